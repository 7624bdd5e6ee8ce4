"""Asks the module within this process, or the program."""
import errno
import json
import signal
import subprocess
import sys

from . import _program
from ._errors import error_of

_session = None


def forget():
    """Lets go of what the module read and built, so that files which changed since are read again.
    The program reads them at every call."""
    global _session
    _session = None


def answer(verb, words, folder=None):
    """What the verb's --json prints, as Python's objects. `folder`: where files of this call alone
    lie, left out of messages. Raises Error."""
    code, text, said = _ask([verb, *words, "--json"])
    if folder is not None:
        text, said = text.replace(folder + "/", ""), said.replace(folder + "/", "")
    try:
        result = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError:
        raise error_of(code, said.strip() or f"stepcast {verb} printed no JSON") from None
    error = result.get("error") if isinstance(result, dict) else None
    if isinstance(error, dict) and code != 0:
        raise error_of(code, error["message"], error.get("where") or "", error.get("hint") or "")
    # In a sweep, what has no answer is a row that says so.
    refused = "refused" in result
    # A diagnosis says by its code how the run stands, and is an answer whatever it says.
    answered = "verdict" in result or ("points" in result and code in (1, 4))
    if (code == 0 and not refused) or answered:
        if said:
            print(said, end="", file=sys.stderr)
        return result
    reason = result.get("refused") or result.get("proof") or said.strip()
    raise error_of(4 if refused else code, reason, result=result)


def text_of(verb, words, folder=None):
    """What the verb prints for people."""
    code, text, said = _run([verb, *words])
    if not text:
        raise error_of(code, said.strip())
    return text if folder is None else text.replace(folder + "/", "")


def _ask(words):
    """Exit code, standard output, standard error."""
    module = _program.module()
    if module is None or words[0] not in module.verbs() or not all(map(_is_utf8, words)):
        return _run(words)
    global _session
    session = _session
    if session is None:
        session = _session = module.Session(_program.program())
    text = session.answer(words)
    return _run(words) if text is None else (0, text, "")


def _is_utf8(word):
    """Half of a pair of surrogates is no character; in a file's name it may stand for a byte."""
    try:
        return word.encode("utf-8") is not None
    except UnicodeEncodeError:
        return False


def _started(words):
    # In a session of its own: an interrupt reaches it once, from here; what is finished is kept.
    try:
        return subprocess.Popen([_program.program(), *words], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                encoding="utf-8", start_new_session=True)
    except ValueError as error:  # a zero byte, half of a pair of surrogates
        raise error_of(2, f"no words of a command line: {error}") from None
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        size = sum(map(len, words))
        raise error_of(2, f"a call of {size:,} characters is longer than this system gives to a "
                          "program", hint="write the scenario to a TOML file and name that") from None


def _run(words):
    with _started(words) as child:
        try:
            text, said = child.communicate()
        except BaseException:
            child.send_signal(signal.SIGINT)
            child.communicate()
            raise
    return child.returncode, text, said
