"""Files of the workspace. Nothing outside it is reached: see agentd/sandbox/.

A file for each tool, and what they are made of:

pages.py           one page of a text               docx.py, pdf.py    documents as text
pictures.py        which pictures a model takes     texts.py           bytes as text, and back
replace.py         one piece of a text for another  nearest.py         what stands there instead
patch_format.py    the envelope as data             patch_hunks.py     its hunks in one text
patch_tree.py      its files, before any is touched
ripgrep.py         rg, confined                     matches.py         what it prints
glob_patterns.py   globs as regular expressions
"""
