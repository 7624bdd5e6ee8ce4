"""The notebook as it was executed: every cell ran, and shows what a reader came for."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
assert all(cell["execution_count"] for cell in cells)
outputs = [output for cell in cells for output in cell["outputs"]]
assert not [output for output in outputs if output["output_type"] == "error"]
kinds = [kind for output in outputs for kind in output.get("data", {})]
assert kinds.count("image/svg+xml") == 2, kinds  # the step's memory, the comparison
assert kinds.count("text/html") >= 4, kinds
said = "".join("".join(output.get("text", [])) for output in outputs)
assert "did you mean 'tensor'" in said and "optimal" in said, said
