"""Model providers behind one small interface.

model.py      the interface: a request, a reply, what a provider is
anthropic.py  Claude through the official SDK; imported only when such a model is used
scripted.py   plays a written file of turns: the demo, tests, and trying one's own tools
select.py     from "provider:name" to a provider
unsent.py     whether a failed request ever left this machine
retrying.py   how long to wait before the next try
prices.py     what a call costs, from prices.toml
"""
