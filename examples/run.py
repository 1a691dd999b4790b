"""Runs deploy.sql and deploy.ipynb on an output folder of fleetdiff. Fails if a check in one of them does not hold.

    python examples/run.py OUTPUT            runs both
    python examples/run.py OUTPUT --check    fails, too, if the figures in deploy.ipynb are not those of this run
    python examples/run.py OUTPUT --save     keeps the figures and pictures of this run in deploy.ipynb

What deploy.ipynb shows in the repository is made by --save, from: fleetdiff demo --requests 40 --output OUTPUT
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import duckdb
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "deploy.ipynb"
# Cells with this tag show rounding, which depends on the machine; the name is that of nbval.
IGNORED = "nbval-ignore-output"
TEXT = ("text/plain", "text/html")


def stand_in(output, folder):
    """Lays a folder as both expect it: the files of this one, and the tables as `out`."""
    for file in HERE.iterdir():
        if file.is_file():
            (folder / file.name).symlink_to(file)
    (folder / "out").symlink_to(output.resolve())


def failure_of_sql(folder):
    """What is wrong in deploy.sql, in words; None if every statement runs."""
    os.chdir(folder)
    connection = duckdb.connect()
    for statement in connection.extract_statements((folder / "deploy.sql").read_text()):
        try:
            answer = connection.sql(statement)
            if answer is not None:
                answer.to_arrow_table()
        except duckdb.Error as error:
            return f"deploy.sql: {error}\n  in: {statement.query.strip()[:200]}"
    return None


def failure_of_notebook(notebook, folder):
    """What is wrong in the notebook, in words; None if every cell runs. Leaves the outputs in `notebook`."""
    # The kernel is the interpreter of this program, not what a user has installed under the same name.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["IPYTHONDIR"] = str(folder / ".ipython")
    # Sockets of the file system, which nobody else on the machine can open.
    config = Config({"KernelManager": {"transport": "ipc"}})
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, config=config, kernel_name="python3", timeout=300, record_timing=False, resources=place)
    try:
        client.execute()
    except CellExecutionError as error:
        (cell,) = (cell for cell in notebook.cells for one in cell.get("outputs", []) if one.output_type == "error")
        return f"deploy.ipynb: cell {cell.id}: {error.ename}: {error.evalue}"
    notebook.metadata["language_info"] = {"name": "python"}
    return None


def shown(notebook):
    """{cell: text that it shows}, without what depends on the machine, and how many pictures there are."""
    texts, pictures = {}, 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        pictures += sum("image/png" in output.get("data", {}) for output in cell.outputs)
        if IGNORED not in cell.metadata.get("tags", []):
            of_data = [output.get("data", {}).get(kind, "") for output in cell.outputs for kind in TEXT if "image/png" not in output.get("data", {})]
            texts[cell.id] = [output.get("text", "") for output in cell.outputs] + of_data
    return texts, pictures


def failure_of_saved(saved, notebook):
    """What the saved notebook shows otherwise, in words; None if it is up to date."""
    (before, pictures_before), (now, pictures_now) = shown(saved), shown(notebook)
    other = [name for name in now if now[name] != before[name]]
    if not other and pictures_before == pictures_now:
        return None
    what = f"cells {', '.join(other)}" if other else f"{pictures_before} pictures instead of {pictures_now}"
    hint = "fleetdiff demo --requests 40 --output out && python examples/run.py out --save"
    return f"deploy.ipynb shows other figures than this run ({what}); to keep the new ones: {hint}"


def main():
    parser = argparse.ArgumentParser(description="Runs the notebook and the SQL of this folder on an output folder of fleetdiff.")
    parser.add_argument("output", type=Path, help="the folder that fleetdiff wrote")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail if deploy.ipynb shows other figures than this run")
    what.add_argument("--save", action="store_true", help="keep the figures and pictures of this run in deploy.ipynb")
    arguments = parser.parse_args()
    if not (arguments.output / "cells").is_dir():
        parser.error(f"{arguments.output} is not an output folder of fleetdiff: it has no table cells")
    saved, notebook = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        stand_in(arguments.output, folder)
        failures = [failure_of_sql(folder), failure_of_notebook(notebook, folder)]
        os.chdir(HERE)
    if arguments.check and failures == [None, None]:
        failures.append(failure_of_saved(saved, notebook))
    failures = [failure for failure in failures if failure is not None]
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    if failures:
        return 1
    if arguments.save:
        nbformat.write(notebook, NOTEBOOK)
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    print(f"deploy.sql and {cells} cells of deploy.ipynb ran, with {shown(notebook)[1]} pictures; every check holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
