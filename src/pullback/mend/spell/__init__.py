"""Tables of spellings, one file a host.

`MODULES` says where the functions stand: a module, and what leads from it to them. `TABLE` spells them for a
program that has a name of such a module, and `BARE` what can be written without any.
"""
