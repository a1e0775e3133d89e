"""Whether file locks can be trusted where the database lies."""

from pathlib import Path

from agentd.domain.errors import StoreUnusable

# `flock` and `fcntl` locks are absent, late or per-host on these.
_NETWORK = {"9p", "afs", "ceph", "cifs", "davfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4"} | {
    "smb2",
    "smb3",
    "smbfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.rclone",
    "fuse.sshfs",
}
_MOUNTS = Path("/proc/self/mounts")


def refuse_network_filesystem(path: Path, mounts: Path = _MOUNTS) -> None:
    """Raises StoreUnusable when `path` lies on a network file system (as far as Linux tells)."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return  # no mount table (not Linux): nothing can be said
    where = path.resolve()
    kind, depth = "", -1
    for line in table.splitlines():
        _, point, filesystem, *_ = line.split(" ")
        mounted = Path(point.encode().decode("unicode_escape"))
        if where.is_relative_to(mounted) and len(mounted.parts) >= depth:
            kind, depth = filesystem, len(mounted.parts)
    if kind in _NETWORK:
        raise StoreUnusable(
            f"{path} is on a network file system ({kind}), where file locks do not protect it",
            hint="Put the home on a local disk: --home or AGENTD_HOME.",
        )
