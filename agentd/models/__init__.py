"""Model providers behind one small interface.

model.py            the interface: a request, a reply, what a provider is
select.py           from "provider:name" to a provider
anthropic.py        Claude through the official SDK; imported only when such a model is used
anthropic_errors.py what its errors mean
openai.py           OpenAI and all that speak as it does, through its SDK; imported when used
openai_messages.py  from the shapes of the journal to those of Chat Completions
openai_stream.py    and back, a reply as it comes in
openai_errors.py    what its errors mean
scripted.py         plays a written file of turns: the demo, tests, and trying one's own tools
failures.py         what is the same in the failures of all providers
arguments.py        the arguments of a call, as a model wrote them
keys.py             what is wrong with a key at first sight
retrying.py         how long to wait before the next try
breaker.py          leaves a provider alone that is down
prices.py           what a call costs, from prices.toml
"""
