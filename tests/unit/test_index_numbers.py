"""What README and docs/fm_index.md say of building an index is what the records say."""

from __future__ import annotations

import re
from pathlib import Path

from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
TINY = "build of the first 1000 bases"
SENTENCES = {
    "README.md": r"beside the (\d+) MB that Python and programs take for a kilobase",
    "CHANGELOG.md": r"beside the (\d+) MB of Python and programs",
    "docs/decisions.md": r"a process takes that indexes a kilobase, (\d+) MB,",
}
"""Where pages say what a process takes that indexes a kilobase."""


def test_an_index_built_on_a_gpu_is_the_record() -> None:
    """The table of docs/fm_index.md, seconds by stage, and what the README says of it."""
    records = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-index" / "kmer_seeds.tsv")
    records = records[records["metric"] == "time"]
    medians = records.groupby(["tool", "device", "stage"])["value"].median()
    sides = ("warpseed", "gpu"), ("warpseed", "cpu"), ("libdivsufsort", "cpu")
    page = (ROOT / "docs" / "fm_index.md").read_text(encoding="utf-8")
    lines = page.split("| stage | one H200 |")[1].splitlines()[2:]
    stages = "read", "text", "text_to_device", "suffix_array", "index_to_host", "total", "tagged_rows"
    for line, stage in zip(lines[: len(stages)], stages, strict=True):
        told = [f"{medians[(*side, stage)]:.3f}" if (*side, stage) in medians.index else "" for side in sides]
        assert [cell.strip() for cell in line.split("|")[2:-1]] == told
    there, here = (medians["warpseed", device] for device in ("gpu", "cpu"))
    first = records[(records["tool"] == "warpseed") & (records["repeat"] == 0)].set_index(["device", "stage"])["value"]
    assert f"The first build of a process took {first['gpu', 'total']:.2f} s in all" in " ".join(page.split())
    assert f"check and save, took {here['process']:.2f} s." in " ".join(page.split())
    told = [
        f"{there['suffix_array'] + there['tagged_rows']:.3f}",
        f"{there['total']:.2f}",
        f"{here['total']:.2f}",
        f"{medians['libdivsufsort', 'cpu', 'suffix_array']:.2f}",
    ]
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("The index itself is made there")[1]
    assert re.findall(r"(\d+\.\d+) s", text)[:4] == told


def test_rows_of_both_strands_in_decisions_are_the_records() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    [told] = re.findall(r"from the driver, by record \| (\d+) \| ([\d,]+) \|", text)
    for cell, machine in zip(told, ("nvidia-h200-index", "nvidia-h200-human-index"), strict=True):
        records = read_records(ROOT / "resources" / "measurements" / machine / "kmer_seeds.tsv")
        rows = records.loc[(records["stage"] == "tagged_rows") & (records["metric"] == "time"), "value"]
        assert float(cell.replace(",", "")) == round(float(f"{1e3 * rows.median():.3g}"))


def test_an_index_built_on_cores_is_the_record() -> None:
    """The table of docs/fm_index.md, and what the README says of it."""
    records = read_records(ROOT / "resources" / "measurements" / "amd-epyc-index" / "kmer_seeds.tsv")
    whole = records[records["case"] == "build"]
    medians = whole.groupby(["tool", "threads", "stage", "metric"])["value"].median()
    page = (ROOT / "docs" / "fm_index.md").read_text(encoding="utf-8")
    bases = dict.fromkeys(records["case"], 100_286_070)
    bases |= {case: int(case.split()[-2]) for case in bases if case != "build"}
    lines = page.split("| | in memory | as a process |")[1].split("\n\n")[0].splitlines()[2:]
    told = [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines]
    sides = [*((("warpseed", threads), "build") for threads in (1, 2)), (("bwa", 1), "build")]
    sides += [(("warpseed", 2), case) for case in bases if case != "build"]
    assert len(told) == len(sides) == 10
    peaks = records[(records["tool"] == "warpseed") & (records["metric"] == "memory")].groupby("case")["value"].max()
    program = peaks[TINY]
    for row, (side, case) in zip(told, sides, strict=True):
        own = records[records["case"] == case].groupby(["tool", "threads", "stage", "metric"])["value"].median()
        total = own.get((*side, "total", "time"))
        process, memory = (own[(*side, "process", metric)] for metric in ("time", "memory"))
        assert row == [
            "" if total is None else f"{total:.3g} s",
            f"{process:.3g} s",
            f"{memory / 1e9:.2f} GB",
            "" if case == TINY else f"{memory / bases[case]:.1f}",
            "" if case == TINY or side[0] == "bwa" else f"{(memory - program) / bases[case]:.1f}",
        ]
    alone = medians["libdivsufsort", 1, "suffix_array", "time"]
    assert f"makes the suffix array alone in {alone:.3g} s" in " ".join(page.split())
    told = [medians["warpseed", 2, stage, "time"] for stage in ("total", "process")]
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("The index of C. elegans takes")[1]
    told.append(medians["bwa", 1, "process", "time"])
    assert re.findall(r"([\d.]+) s", text)[:3] == [f"{value:.3g}" for value in told]
    [said] = re.findall(r"at most ([\d.]+) bytes of memory a base", text)
    assert said == f"{peaks['build'] / bases['build']:.1f}"
    text = " ".join(text.split())
    larger = [peaks[case] / bases[case] for case in bases if 35_000_000 <= bases[case] < bases["build"]]
    [smaller] = re.findall(r"of its first 35 Mbp and more at most ([\d.]+\d)", text)
    assert smaller == f"{max(larger):.1f}" and max(larger) < 9
    beside = max((peaks[case] - program) / bases[case] for case in bases if case != TINY)
    said = re.findall(r"Beside the (\d+) MB of a kilobase it is at most ([\d.]+) at any of these sizes", text)
    assert said == [(f"{program / 1e6:.0f}", f"{beside:.1f}")] and beside < 9
    pages = {name: " ".join((ROOT / name).read_text(encoding="utf-8").split()) for name in (*SENTENCES, "CHANGELOG.md")}
    for name, sentence in SENTENCES.items():
        assert re.findall(sentence, pages[name]) == [f"{program / 1e6:.0f}"], name
    assert re.findall(r"a genome takes [\d.]+ to ([\d.]+), with tags", text) == [f"{beside:.1f}"]
    assert re.findall(r"a base \(C\. elegans\), ([\d.]+) without tags", pages["CHANGELOG.md"]) == [
        f"{peaks['build'] / bases['build']:.1f}"
    ]
    told = [medians["warpseed", threads, stage, "time"] for stage in ("suffix_array", "process") for threads in (1, 2)]
    found = re.findall(
        r"it is now ([\d.]+) s with one thread and ([\d.]+) with two, the process ([\d.]+) and ([\d.]+)\.",
        pages["docs/decisions.md"],
    )
    assert found == [tuple(f"{value:.3g}" for value in told)]


def test_an_index_of_the_papers_size_is_the_record() -> None:
    """What docs/fm_index.md and the README say of 3.02 Gbp; the arrays of CPU and GPU are the same."""
    folder = ROOT / "resources" / "measurements" / "nvidia-h200-human-index"
    records, shared = (read_records(folder / name) for name in ("kmer_seeds.tsv", "index.tsv"))
    built = records[records["item"] == "index"]
    in_memory = built[built["stage"] != "process"]
    assert set(in_memory["device"]) == {"cpu", "gpu"} and in_memory["digest"].nunique() == 1
    times = built[built["metric"] == "time"].groupby(["device", "stage"])["value"]
    medians, first = times.median(), times.first()
    memory = built.loc[built["metric"] == "memory", "value"].median()
    bases = shared.loc[shared["metric"] == "count", "value"].iloc[0]
    peak = f"{memory / 1e9:.1f} GB"
    a_base = f"{memory / bases:.1f} bytes a base"
    page, readme = (
        " ".join((ROOT / name).read_text(encoding="utf-8").split()) for name in ("docs/fm_index.md", "README.md")
    )
    [said] = re.findall(
        r"the GPU takes (\S+) s for suffix array and table and (\S+) for the rows of both strands, and took "
        r"(\S+) and (\S+) in the first build of the process. 16 threads of the host take (\S+) s",
        page,
    )
    stages = ("suffix_array", "tagged_rows")
    told = [f"{values['gpu', stage]:.2f}" for values in (medians, first) for stage in stages]
    assert list(said) == [*told, f"{medians['cpu', 'total']:.1f}"]
    process = f"{medians['cpu', 'process']:.1f} s"
    assert f"`warpseed index` {process} with all it takes, and {peak}, which is {a_base}" in page
    assert (
        f"needs in {medians['cpu', 'total']:.1f} s, as a process with its files in {process} and {peak}, {a_base};"
        in readme
    )
    assert (
        2.7 < first["gpu"][list(stages)].sum() / medians["gpu"][list(stages)].sum() < 3.6
    )  # "some three times as long"
    [made] = shared.loc[shared["item"] == "simulation", "value"]
    assert f"The genome itself was made in {made:.2f} s on 16 threads." in readme
