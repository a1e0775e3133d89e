"""Tools for the web.

web_fetch.py     a page, as text
readable.py      HTML as Markdown, without what a reader does not see
to_markdown.py   the script that makes it, in a confined process
charset.py       which characters the bytes of a page are
html_to_text.py  HTML as plain text
"""
