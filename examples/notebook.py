"""Starts JupyterLab as a workspace, on the port that Aliquot allots, and prints the URL at which it is reached.

    make notebook && aliquot submit examples/notebook.yaml && aliquot logs -f notebook

Only this machine can reach it, and only with the token in the URL, which is made anew at each start.
"""

import importlib.util
import os
import secrets
import sys


def main() -> None:
    """Become JupyterLab."""
    if importlib.util.find_spec("jupyterlab") is None:
        sys.exit("JupyterLab is not installed here; `make notebook` installs it and starts this")
    port = os.environ.get("ALIQUOT_PORT") or "8888"
    token = secrets.token_urlsafe(24)
    print(f"JupyterLab: http://127.0.0.1:{port}/lab?token={token}", flush=True)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        # Who may use the account that runs this may use the notebook; Jupyter asks for it to be said of root.
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    # By the environment, because everybody on the machine can read a command line.
    os.execve(sys.executable, command, {**os.environ, "JUPYTER_TOKEN": token})


if __name__ == "__main__":
    main()
