"""The smallest pygls server: what `initialize` costs without anything of ours."""

from pygls.lsp.server import LanguageServer

LanguageServer("bare", "1").start_io()
