"""Write envs/*.yaml, the conda environments, from the pins of requirements*.txt.

``python tools/make_envs.py`` writes them; ``--check`` only says whether they agree, with exit code 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.12"
PEERS = {"bowtie": "1.3.1", "bwa": "0.7.18", "mummer": "3.23", "razers3": "3.5.8", "yara": "1.0.3"}
"""Peers come from bioconda alone, so this is their only pin."""
CONDA_NAMES = {
    "Jinja2": "jinja2",
    "isal": "python-isal",
    "matplotlib": "matplotlib-base",
    "Pygments": "pygments",
    "PyYAML": "pyyaml",
}
ONLY_PIP = ("deflate", "numba-cuda", "cupy-cuda12x")
"""What conda-forge does not have, or not in this version."""
NOT_IN_JOBS = ("snakemake", "Pygments", "jsonschema")
"""What the process that runs Snakemake needs, and no job."""


def read_pins(name: str) -> list[tuple[str, str]]:
    """Return (package with extras, version) of each line of a requirements file."""
    lines = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    pins = []
    for line in filter(None, lines):
        package, version = line.split("==")
        pins.append((package, version))
    return pins


def environment(requirements: list[str], peers: dict[str, str] | None = None) -> str:
    """Return the text of one environment file."""
    conda = [f"python ={PYTHON}"]
    pip = []
    for package, version in (pin for name in requirements for pin in read_pins(name)):
        bare = package.split("[")[0]
        if bare in NOT_IN_JOBS:
            continue
        if bare in ONLY_PIP:
            pip.append(f"{package}=={version}")
        else:
            conda.append(f"{CONDA_NAMES.get(bare, bare)} ={version}")
    conda += [f"{name} ={version}" for name, version in (peers or {}).items()]
    channels = ["conda-forge", *(["bioconda"] if peers else []), "nodefaults"]
    lines = ["# Written by tools/make_envs.py from requirements*.txt: `make envs` after a change there.", "channels:"]
    lines += [f"  - {channel}" for channel in channels]
    lines += ["dependencies:", *(f"  - {line}" for line in conda), "  - pip", "  - pip:"]
    lines += [f'      - "{line}"' for line in pip]
    return "\n".join(lines) + "\n"


def environments() -> dict[str, str]:
    """Return file name and text of every environment."""
    return {
        "cpu.yaml": environment(["requirements.txt"]),
        "gpu.yaml": environment(["requirements.txt", "requirements-gpu.txt"]),
        "peers.yaml": environment(["requirements.txt"], PEERS),
    }


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    stale = []
    for name, text in environments().items():
        path = ROOT / "envs" / name
        if not path.exists() or path.read_text() != text:
            stale.append(f"envs/{name}")
            if not check:
                path.write_text(text)
    if check and stale:
        print(f"{', '.join(stale)} differ from requirements*.txt: run `make envs`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
