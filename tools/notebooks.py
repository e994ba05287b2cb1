"""The notebooks in docs/notebooks: a page of the website each, and `python tools/notebooks.py`,
which runs them and keeps what they say.

A notebook is kept with its outputs, so that it can be read where nothing runs: among the files of
the repository and on the website. `make test` runs them anew and holds what they say against what
is kept. To change one: edit it in Jupyter, or by `jupytext --to py:percent` and back, then run
this. A picture's cell says in its metadata what can be seen: {"alt": "..."}.
"""

import html
import json
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
SLOT = re.compile(r'<div class="output" id="output-(\d+)"></div>')
LINK = re.compile(r"\]\(((?:\.\./)?(?:notebooks/)?[a-z-]+)\.ipynb\)")


# --- as pages of the website ----------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted(FOLDER.glob("*.ipynb")):
        text = page(json.loads(path.read_text()), path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
    return files


def page(notebook: dict[str, Any], name: str) -> str:
    """Its Markdown, with a slot for what each cell has said: HTML would not pass through whole."""
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        code = f"```python\n{source}\n```"
        if cell["metadata"].get("jupyter", {}).get("source_hidden"):
            code = '??? quote "The code of this cell"\n\n' + textwrap.indent(code, "    ")
        parts.append(code)
        if cell["outputs"]:
            parts.append(f'<div class="output" id="output-{number}"></div>')
    parts.insert(1, f"*This page is a notebook: [download it]({name}), and run it in Jupyter.*")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to notebooks lead to their pages, but for the one to the file itself."""
    return LINK.sub(lambda m: m[0] if page.file.name == m[1] else f"]({m[1]}.md)", markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    path = FOLDER / f"{page.file.name}.ipynb"
    if page.file.src_uri != f"notebooks/{path.stem}.md":
        return content
    cells = json.loads(path.read_text())["cells"]

    def said(slot: re.Match[str]) -> str:
        shown = "\n".join(
            output_html(o, cells[int(slot[1])], path.name) for o in cells[int(slot[1])]["outputs"]
        )
        return f'<div class="output">{shown}</div>'

    return SLOT.sub(said, content)


def output_html(output: dict[str, Any], cell: dict[str, Any], name: str) -> str:
    if output["output_type"] == "error":
        raise PluginError(f"{name} was kept with an error, {output['ename']}: mend it, run it")
    if output["output_type"] == "stream":
        return f"<pre><code>{html.escape(joined(output['text']).rstrip())}</code></pre>"
    data = output["data"]
    if "text/html" in data:
        return joined(data["text/html"])
    if "image/png" in data:
        alt = cell["metadata"].get("alt")
        if not alt:
            raise PluginError(f"{name} has a picture without words: its cell's metadata needs alt")
        picture = joined(data["image/png"]).replace("\n", "")
        return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{picture}">'
    return f"<pre><code>{html.escape(joined(data['text/plain']))}</code></pre>"


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


# --- run, and kept --------------------------------------------------------------------------------


def executed(path: Path, folder: str | Path, limit: int = 300) -> Any:
    """The notebook with what it says today, run in that folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("alt", "jupyter")}
    resources = {"metadata": {"path": str(folder)}}
    settings = {"kernel_name": "python3", "record_timing": False, "coalesce_streams": True}
    NotebookClient(notebook, timeout=limit, resources=resources, **settings).execute()
    for cell in notebook.cells:  # a progress bar leaves nothing in the end, in an output of its own
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if "data" not in o or any(o.data.values())]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main(names: list[str]) -> None:
    import nbformat

    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # for the kernels
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, folder), path)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
