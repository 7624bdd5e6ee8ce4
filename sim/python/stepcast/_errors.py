"""The program's mistakes as exceptions, one class for what its exit codes mean."""


class Error(Exception):
    """What the program reports: `code`, the exit code it ends with; `where`, `problem` and `hint`;
    `result`, the answer where there is one all the same, else None."""

    def __init__(self, problem, code=1, where="", hint="", result=None):
        place = f"{where}: " if where else ""
        super().__init__(place + problem + (f", {hint}" if hint else ""))
        self.problem, self.code, self.where, self.hint = problem, code, where, hint
        self.result = result

    def __reduce__(self):
        return type(self), (self.problem, self.code, self.where, self.hint, self.result)


class InputError(Error, ValueError):
    """A key, a value or an option that means nothing (exit codes 2 and 3)."""


class NoFeasiblePlan(Error):
    """No plan fits in memory (exit code 4)."""


class OutputError(Error, OSError):
    """A file could not be written (exit code 7)."""

    __str__ = Exception.__str__


_classes = {2: InputError, 3: InputError, 4: NoFeasiblePlan, 7: OutputError}


def error_of(code, problem, where="", hint="", result=None):
    return _classes.get(code, Error)(problem, code, where, hint, result)
