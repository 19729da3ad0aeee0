"""The samples' section of the page, from made-up summaries and densities."""

import random
from pathlib import Path
from types import SimpleNamespace

import list_samples
import pytest
from made_up_records import load, local_rows, nothing
from made_up_samples import write_compared, write_counted, write_sample
from page_reader import read_page
from warpseed.errors import InputError
from warpseed.report import samples, style
from warpseed.report.page import write_page
from warpseed.report.systems import SAMPLE_TABLES

YEAST = [("chrI", 230_218), ("chrII", 813_184), ("chrIII", 316_620), ("chrIV", 1_531_933), ("chrM", 40_000)]
SCAFFOLDS = [(f"scaffold_{i}_of_an_assembly", 2_000 + 40 * i) for i in range(2_000)]


def even(mean):
    """Seeds that lie evenly, with some noise."""
    noise = random.Random(1)
    return lambda contig, start: (round(noise.gauss(mean, mean**0.5)) + 1, mean)


def drawn(folder, name, contigs, seeds, **facts):
    """The figure of a sample."""
    style.apply_style()
    figure = samples._seeds_along(samples.read_sample(*write_sample(folder, name, contigs, seeds, **facts)))
    figure.canvas.draw()
    return figure


def words(figure):
    shown = [text.get_text() for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))]
    return " | ".join(shown).replace("\n", " ")


@pytest.fixture
def write(tmp_path):
    """Write a page of samples, whose files lie as those of a run; its reader and text."""

    def build(made, measurements=None, counted=()):
        read = [samples.read_sample(*paths) for paths in made]
        figures = [tmp_path / "figures" / "samples" / f"{sample.name}.svg" for sample in read]
        samples.draw_samples(read, figures)
        files = [{"seeds": path.with_name("any.bam"), "summary": path, "density": other} for path, other in made]
        counts = [(samples.read_counted(path, SAMPLE_TABLES), {"k-mers": path.with_name("any.gz")}) for path in counted]
        blocks = samples.section(tmp_path, read, files, figures, counts, SAMPLE_TABLES)
        write_page(tmp_path / "report.html", measurements or nothing(), {"cpu": "Test CPU"}, samples=blocks)
        return read_page(tmp_path / "report.html")

    return build


def test_samples_stand_first_with_their_numbers_and_files(tmp_path, write):
    seeds = tmp_path / "seeds"
    counts = {"queries": 4_000, "found": 2_000, "unique": 1_500, "multiple": 500, "dropped_queries": 7}
    made = [
        write_sample(seeds, "gut.1", YEAST, even(3), reference="yeast", **counts),
        write_sample(seeds, "gut.1.b", YEAST, even(2)),
    ]
    reader, text = write(made, load(tmp_path, local_rows()))
    total = samples.read_sample(*made[0]).counts["hits"]
    assert "Samples Summary Paper 000" in text
    row = "gut.1 kmers: k = 20, step = 20, 1 mismatch yeast reads.fq.gz 4,000 2,000 50.0 % 1,500 37.5 % 500 12.5 % 7"
    assert f"{row} {total:,} seeds , summary , density gut.1.b" in text
    assert text.index("Seeds along the reference") < text.index("How many times faster")
    own = [address for address in reader.addresses if address.startswith("seeds/")]
    tables = [[f"seeds/{name}.{kind}.tsv" for kind in ("summary", "density")] for name in ("gut.1", "gut.1.b")]
    assert own == ["seeds/any.bam", *tables[0], "seeds/any.bam", *tables[1]]
    assert all((tmp_path / address).is_file() for address in sum(tables, []))
    assert sum(address.startswith("data:image/svg") for address in reader.addresses) == 2


def test_samples_whose_kmers_are_counted_have_a_table(tmp_path, write):
    counted = [write_counted(tmp_path / "seeds", "gut", records=45_000, bases=2_700_000, kmers=1_800_000, new=2_980)]
    reader, text = write([write_sample(tmp_path / "seeds", "mine", YEAST, even(2))], counted=counted)
    assert "K-mers counted" in text
    assert "gut tree_bitmap: k = 21 reads.fq.gz 45,000 2,700,000 1,800,000 2,980 k-mers" in text
    assert "seeds/any.gz" in reader.addresses
    reader, text = write([], counted=counted)
    assert "#samples" in reader.addresses and "1,800,000" in text and "Seeds along" not in text


def test_samples_whose_records_are_compared_have_a_table(tmp_path, write):
    compared = write_compared(tmp_path / "seeds", "phages", records=3, bases=58_000, pairs=3)
    _, text = write([], counted=[write_counted(tmp_path / "seeds", "gut", kmers=7), compared])
    assert text.index("K-mers counted") < text.index("Records compared")
    assert "phages ebwt: tree = nj reads.fq.gz 3 58,000 3 " in text
    _, text = write([], counted=[compared])
    assert "K-mers counted" not in text
    path = write_compared(tmp_path / "seeds", "other", system="mems")
    with pytest.raises(InputError, match="is of the system mems, which searches an index; remove it"):
        samples.read_counted(path, SAMPLE_TABLES)


def test_the_table_of_samples_has_the_columns_of_all(tmp_path):
    paths = [
        write_sample(tmp_path, "mine", YEAST, even(1))[0],
        write_counted(tmp_path, "gut", records=7),
        write_compared(tmp_path, "phages", pairs=3),
        write_sample(tmp_path, "other", YEAST, even(1))[0],
    ]
    table = tmp_path / "samples.tsv"
    list_samples.main(SimpleNamespace(input=SimpleNamespace(summaries=paths), output=SimpleNamespace(table=table)))
    heading, *lines = [line.split("\t") for line in table.read_text().splitlines()]
    rows = [dict(zip(heading, line, strict=True)) for line in lines]
    assert [row["sample"] for row in rows] == ["mine", "gut", "phages", "other"]
    for row, path in zip(rows, paths, strict=True):
        own = dict(zip(*(line.split("\t") for line in path.read_text().splitlines()), strict=True))
        assert {**dict.fromkeys(heading, ""), **own} == row


def test_a_page_without_samples_has_no_such_section(tmp_path, write):
    reader, text = write([])
    assert "#samples" not in reader.addresses
    assert "Seeds along" not in text


def test_a_sample_without_hits_says_so(tmp_path, write):
    reader, text = write([write_sample(tmp_path, "empty", YEAST, None, queries=1_234, dropped_queries=12)])
    assert "empty: none of 1,234 queries has a seed; max_hits dropped 12." in text
    assert not [address for address in reader.addresses if address.startswith("data:")]
    assert "No seed was found." in words(drawn(tmp_path, "empty", YEAST, None))


def test_a_sample_without_queries_is_shown(tmp_path, write):
    _, text = write([write_sample(tmp_path, "none", YEAST, None, queries=0)])
    assert "none: none of 0 queries has a seed." in text
    _, text = write([write_sample(tmp_path, "one", YEAST, None, queries=1)])
    assert "one: its one query has no seed." in text


def test_thirty_samples_each_have_a_row_and_a_picture(tmp_path, write):
    names = [f"sample_{number:02d}" for number in range(30)]
    reader, text = write([write_sample(tmp_path, name, [("chr", 50_000)], even(2)) for name in names])
    assert all(f"{name} kmers: " in text and f"{name}: where the seeds begin" in text for name in names)
    assert sum(address.startswith("data:image/svg") for address in reader.addresses) == 30
    assert (tmp_path / "report.html").stat().st_size < 5e6


def test_the_picture_keeps_every_seed_and_its_strand(tmp_path):
    """Columns do not end where contigs and bins do: their sums are those of the bins."""
    figure = drawn(tmp_path, "yeast", YEAST, even(40))
    sample = samples.read_sample(tmp_path / "yeast.summary.tsv", tmp_path / "yeast.density.tsv")
    plus, minus = (patch.get_data() for patch in figure.axes[0].patches)
    assert len(plus.values) == len(minus.values) == 500
    assert plus.values.sum() == pytest.approx(sample.density["plus"].sum())
    assert -minus.values.sum() == pytest.approx(sample.density["minus"].sum())
    assert plus.edges[-1] == sum(length for _, length in YEAST)


def test_where_the_seeds_are_is_where_they_are_drawn(tmp_path):
    """All seeds of a contig lie between its borders."""
    figure = drawn(tmp_path, "one", YEAST, lambda contig, start: (5, 0) if contig == "chrIII" else (0, 0))
    plus, minus = (patch.get_data() for patch in figure.axes[0].patches)
    first, last = 230_218 + 813_184, 230_218 + 813_184 + 316_620
    inside = (plus.edges[1:] > first) & (plus.edges[:-1] < last)
    assert plus.values[inside].sum() == pytest.approx(plus.values.sum())
    assert plus.values[inside].min() > 0
    assert not minus.values.any()


def test_repeats_are_cut_marked_and_named(tmp_path):
    calm = drawn(tmp_path, "calm", [("chr", 500_000)], even(40))
    assert "marked" not in words(calm)
    figure = drawn(tmp_path, "loud", [("chr", 500_000)], lambda contig, start: (9_000 if start == 4_000 else 40, 40))
    assert "marked columns have up to 9,000" in words(figure)
    top = figure.axes[0].get_ylim()[1]
    assert 40 < top < 100
    marks = [line for line in figure.axes[0].lines if line.get_marker() == "^"]
    assert [len(line.get_xdata()) for line in marks] == [1]
    assert marks[0].get_xdata()[0] == pytest.approx(4_500)


def test_contigs_are_named_where_there_is_room(tmp_path):
    few = drawn(tmp_path, "few", YEAST, even(3))
    assert [label.get_text() for label in few.axes[0].get_xticklabels()] == ["chrI", "chrII", "chrIII", "chrIV"]
    assert "in 5 contigs, the longest chrIV with 1.53 Mbp" in words(few)
    many = drawn(tmp_path, "many", SCAFFOLDS, even(1))
    assert "in 2,000 contigs, the longest scaffold_1999_o… with 82 kbp" in words(many)
    assert [label.get_text() for label in many.axes[0].get_xticklabels()] == []
    assert len(many.axes[0].lines) < 10  # no border for each of them
    one = drawn(tmp_path, "one", [("NC_000913.3", 4_641_652)], even(3))
    assert "NC_000913.3" in words(one) and "4 Mbp" in words(one)


@pytest.mark.parametrize("contigs", [YEAST, SCAFFOLDS, [("chr", 120)], [(f"contig_{i}", 9_000) for i in range(24)]])
def test_texts_stay_inside_the_picture_and_apart(contigs, tmp_path):
    figure = drawn(tmp_path, "s" * 60, contigs, even(2), reference="a_rather_long_name_of_a_reference_genome.fa.gz")
    renderer = figure.canvas.get_renderer()
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    ticks = [*axes.get_xticklabels(), *(t for t in axes.get_yticklabels() if low <= t.get_position()[1] <= high)]
    texts = [*figure.texts, *ticks, axes.xaxis.label, axes.yaxis.label]
    for text in [text for text in texts if text.get_text().strip() and text.get_visible()]:
        box = text.get_window_extent(renderer)
        inside = figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0
        assert inside, text.get_text()
    boxes = [text.get_window_extent(renderer) for text in axes.get_xticklabels() if text.get_text()]
    assert all(one.x1 <= other.x0 for one, other in zip(boxes, boxes[1:], strict=False))
    assert figure.get_size_inches()[0] == style.WIDTH


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [
        ("summary", lambda text: text.replace("unique", "uniqe"), "summary.tsv has no column 'unique'"),
        ("summary", lambda text: text.replace("\t0\t", "\tx\t"), "summary.tsv is no readable table"),
        ("summary", lambda text: text.partition("\n")[0], "summary.tsv has 0 rows, not one"),
        ("density", lambda text: text + "chrM\t40000\t40001\t1\t0\n", "density.tsv holds other hits than"),
        ("density", lambda text: text.replace("chrM\t0", "chrM\t?"), "density.tsv is no readable table"),
        ("density", lambda text: "", "density.tsv is no readable table"),
    ],
)
def test_files_that_cannot_be_are_named(kind, change, sentence, tmp_path):
    paths = dict(zip(("summary", "density"), write_sample(tmp_path, "mine", YEAST, even(1)), strict=True))
    Path(paths[kind]).write_text(change(Path(paths[kind]).read_text()))
    with pytest.raises(InputError, match=sentence):
        samples.read_sample(**paths)


def test_a_summary_of_counted_kmers_that_cannot_be_is_named(tmp_path):
    path = write_counted(tmp_path, "gut")
    path.write_text(path.read_text().replace("kmers\tnew", "kmers\told"))
    with pytest.raises(InputError, match="gut.summary.tsv has no column 'new'"):
        samples.read_counted(path, SAMPLE_TABLES)
