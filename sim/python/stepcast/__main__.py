"""python3 -m stepcast ARGS: the program with these arguments."""
import os
import sys

from ._program import program

if __name__ == "__main__":
    os.execv(program(), ["stepcast", *sys.argv[1:]])
