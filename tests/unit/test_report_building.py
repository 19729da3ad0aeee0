"""What building an index took, from made-up records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_up_records import PAPER, PUBLISHED, ROOT, load
from warpseed.measure.records import index_rows, write_records
from warpseed.report import building
from warpseed.report.blocks import Table, Text
from warpseed.report.measurements import load_measurements

READS = ROOT / "resources" / "papers" / "one_error.yaml"


def build(stage: str = "total", **more: Any) -> dict[str, Any]:
    """A record of a build."""
    fields = {"system": "-", "item": "index", "case": "build", "tool": "warpseed", "threads": 2, "stage": stage}
    return fields | {"machine": "test-cpu", "value": 0.3, **more}


def shown(blocks: list[Any]) -> list[list[str]]:
    """The texts of the table's cells, its head first; behind the first cell of a row what stands above its group."""
    (table,) = [block for block in blocks if isinstance(block, Table)]
    rows = [[cell.text for cell in row] for row in table.heads]
    for group in table.groups:
        for row in group.rows:
            first, *others = (cell.text for cell in row.cells)
            rows.append([first, group.title, *others])
    return rows


def note(blocks: list[Any]) -> str:
    """What stands above the table."""
    (text,) = [block.text for block in blocks if isinstance(block, Text)]
    return text


def test_builds_of_an_index_are_told_apart(tmp_path: Path) -> None:
    """The run's own index, the parts of one tier, and a peer's: no two rows of the table read the same."""
    shared = {"item": "index", "case": "build", "device": "cpu", "threads": 2, "machine": "test-cpu", "value": 0.3}
    rows = [
        {**shared, "system": "-", "tool": "warpseed", "tier": "-", "stage": "total"},
        {**shared, "system": "kmer_seeds", "tool": "warpseed", "tier": "fast", "stage": "total"},
        {**shared, "system": "kmer_seeds", "tool": "bwa", "tier": "-", "stage": "process"},
    ]
    _, *table = shown(building.index_build(load(tmp_path, rows).of("kmer_seeds"), of_all=True))
    assert [row[0] for row in table] == ["warpseed", "warpseed, the fast tier's parts", "bwa"]


def test_a_build_has_its_genome_and_how_often_it_was_timed(tmp_path: Path) -> None:
    named = index_rows([], bases=4_641_652, reference="ecoli", tool="warpseed", machine="test-cpu")
    rows = [*named, *(build(repeat=repeat, value=0.1 * (repeat + 1)) for repeat in range(3))]
    head, row = shown(building.index_build(load(tmp_path, rows).of("kmer_seeds"), of_all=True))
    assert head == ["Tool", "what is timed", "threads", "repeats", "time"]
    assert row == ["warpseed", "test-cpu (here): ecoli, 4.64 Mbp", "built in memory", "2", "3", "200 ms"]


def test_a_genome_is_not_told_where_a_machine_has_two(tmp_path: Path) -> None:
    names = {"tool": "warpseed", "machine": "test-cpu"}
    rows = [build(), *index_rows([], bases=10_000, reference="one", **names)]
    rows += index_rows([], bases=20_000, reference="two", **names)
    measurements = load(tmp_path, rows).of("kmer_seeds")
    assert building.genomes(measurements) == {}
    assert [row[1] for row in shown(building.index_build(measurements, of_all=True))[1:]] == ["test-cpu (here)"]


def test_the_index_of_another_systems_machine_stands_in_one_section_alone(tmp_path: Path) -> None:
    """Machine "here" measured both systems, "there" only k-mer seeds."""
    read = {"system": "one_error", "item": "in_memory", "tool": "warpseed", "case": "r100", "stage": "total"}
    kmers = {"system": "kmer_seeds", "item": "whole", "tool": "warpseed", "case": "S11", "stage": "total"}
    both = [{**fields, "machine": "test-cpu", "value": 1.0} for fields in (read, kmers)]
    there = tmp_path / "there" / "kmer_seeds.tsv"
    write_records(tmp_path / "here.tsv", [build(), *both])
    write_records(there, [build(value=0.5), {**kmers, "machine": "x", "value": 1.0}])
    measurements = load_measurements([tmp_path / "here.tsv"], [there], [PUBLISHED], [PAPER, READS])
    here, other = ["warpseed", "test-cpu (here)"], ["warpseed", "there (reference machine)"]
    _, *rows = shown(building.index_build(measurements.of("one_error")))
    assert [row[:2] for row in rows] == [here]
    _, *rows = shown(building.index_build(measurements.of("one_error"), of_all=True))
    assert [row[:2] for row in rows] == [here, other]


def test_memory_a_base_stands_beside_that_of_the_program(tmp_path: Path) -> None:
    """Of a tiny genome it is the program's; where none was recorded, nothing is taken off."""
    fields = {"system": "kmer_seeds", "tier": "fast", "device": "cpu", "stage": "process"}
    first = {"case": "build of the first {} bases", "parameters": "bases={}"}
    rows = index_rows([], bases=2_000_000, reference="yeast", tool="warpseed", machine="test-cpu")
    for bases, threads, peak in ((0, 1, 19e6), (0, 2, 20e6), (1_000, 2, 6e6), (1_000_000, 2, 13e6)):
        case = {key: text.format(bases) for key, text in first.items()} if bases else {}
        rows += [
            build(**fields, **case, threads=threads, metric=metric, unit=unit, value=value)
            for metric, unit, value in (("time", "s", 1.0), ("memory", "bytes", peak))
        ]
    head, *table = shown(building.index_build(load(tmp_path, rows).of("kmer_seeds"), of_all=True))
    assert head[-3:] == ["peak memory", "bytes a base", "beside a tiny genome's"]
    assert {(row[1].removeprefix("test-cpu (here): "), row[3]): row[-2:] for row in table} == {
        ("yeast, 2 Mbp", "1"): ["9.50", "6.50"],
        ("yeast, 2 Mbp", "2"): ["10.00", "7.00"],
        ("yeast, the first 1 kbp", "2"): ["", ""],
        ("yeast, the first 1 Mbp", "2"): ["13.00", "7.00"],
    }
    assert len({row[1] for row in table}) == 3
    more = [{**row, "threads": 1, "value": 15e6} for row in rows if row.get("parameters") == "bases=1000"]
    _, *table = shown(building.index_build(load(tmp_path / "more", rows + more).of("kmer_seeds"), of_all=True))
    assert [row[-1] for row in table if row[1].endswith("yeast, 2 Mbp")] == ["2.00", "7.00"]
    alone = [row for row in rows if row.get("parameters") != "bases=1000"]
    head, *_ = shown(building.index_build(load(tmp_path / "other", alone).of("kmer_seeds"), of_all=True))
    assert head[-2:] == ["peak memory", "bytes a base"]


def test_what_simulating_the_genome_took_is_a_sentence(tmp_path: Path) -> None:
    """Medians of machine and threads, in no row of the table; of records without it nothing is said."""
    made = {"item": "simulation", "case": "human_like", "parameters": "bases=3100000000", "value": 45.0}
    rows = [build(), build(**made, threads=16)]
    blocks = building.index_build(load(tmp_path, rows).of("kmer_seeds"), of_all=True)
    assert blocks[-1] == Text(
        "The genome human_like, 3.1 Gbp with runs of N, was simulated and written in 45.0 s on 16 threads: "
        "test-cpu (here)."
    )
    assert len(shown(blocks)) == 2
    (*others, table) = building.index_build(load(tmp_path / "other", [build()]).of("kmer_seeds"), of_all=True)
    assert isinstance(table, Table) and len(others) == 2


def test_a_genome_of_another_systems_machine_is_told_in_one_section_alone(tmp_path: Path) -> None:
    made = build(item="simulation", case="human_like", parameters="bases=20000", threads=1)
    kmers = {"system": "kmer_seeds", "item": "whole", "tool": "warpseed", "case": "S11", "stage": "total"}
    read = {**kmers, "system": "one_error", "item": "in_memory", "case": "r100"}
    there = tmp_path / "there" / "kmer_seeds.tsv"
    write_records(there, [made, build(), {**kmers, "value": 1.0}])
    write_records(tmp_path / "here.tsv", [build(), {**read, "machine": "test-cpu", "value": 1.0}])
    measurements = load_measurements([tmp_path / "here.tsv"], [there], [PUBLISHED], [PAPER, READS]).of("one_error")
    assert isinstance(building.index_build(measurements)[-1], Table)
    told = building.index_build(measurements, of_all=True)[-1]
    assert isinstance(told, Text) and "on 1 thread: there (reference machine)" in told.text


def test_memory_is_spoken_of_where_its_columns_stand(tmp_path: Path) -> None:
    rows = index_rows([], bases=2_000_000, reference="yeast", tool="warpseed", machine="test-cpu")
    peak, tiny = "Peak memory is that of a whole process", "In the last column that of a tiny genome is taken off"
    rows.append(build("process"))
    memory = build("process", metric="memory", unit="bytes", value=19e6)
    first = {"case": "build of the first 1000 bases", "parameters": "bases=1000"}
    said = []
    small = [{**build("process"), **first}, {**memory, **first}]
    for name, more in (("time", []), ("peak", [memory]), ("tiny", small)):
        rows += more
        text = note(building.index_build(load(tmp_path / name, rows).of("kmer_seeds"), of_all=True))
        said.append([sentence in text for sentence in (peak, tiny)])
    assert said == [[False, False], [True, False], [True, True]]
