"""A script: HTML in UTF-8 on standard input becomes Markdown on standard output.

to_markdown.py PACKAGES URL MOST_CHARS, run by readable.py in a confined process. Text that the page
hides from its readers is left out. Fails when the page is nested too deeply to be shown whole.
"""

import os
import resource
import sys

_CPU_S = 8
_MEMORY_BYTES = 2 << 30
_UNSEEN = ("script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas")


def main(packages: str, url: str, most_chars: int) -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a library says there is none of the page
    sys.path.append(packages)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Here, because whoever looks for tools imports every file of this folder.
    from html_to_markdown import (  # noqa: PLC0415 - see above
        ConversionOptions,
        PreprocessingOptions,
        WarningKind,
        convert,
    )

    options = ConversionOptions(
        base_url=url,
        compact_tables=True,
        exclude_selectors=[*_UNSEEN, '[aria-hidden="true"]'],
        extract_metadata=False,  # it would be put in front of the text
        hidden_content="drop",
        inline_data_media="alt_text_only",
        preprocessing=PreprocessingOptions(),
        skip_images=True,
    )
    found = convert(sys.stdin.buffer.read().decode(), options)
    if any(each.kind == WarningKind.DEPTH_LIMIT_EXCEEDED for each in found.warnings):
        return 1
    text = (found.content or "").strip()[:most_chars]
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
