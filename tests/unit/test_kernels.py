"""Every kernel compiles without a GPU: to PTX for two compute capabilities, and from there to machine code.

Types come from small host arrays, as the library makes them. Up to LLVM's language a kernel is compiled once: Numba
asks for the capability where it computes with floating-point numbers alone, and no kernel does. A device is pretended,
which takes a process of its own: this file, run as a script, prints what it compiled as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.thorough

LIBRARY = Path(__file__).resolve().parents[2] / "workflow" / "scripts"
CAPABILITIES = {"8.0": (8, 0), "9.0": (9, 0)}
NEWEST = (9, 0)
OWN_STACK = {"paper_inexact_32", "paper_inexact_255"}
"""Figure 4's bounds and stack lie in local memory, so these kernels have a stack frame; the others have none."""
FLOATING_POINT = re.compile(r"\.f(?:16|32|64)\b")


class Compiled(NamedTuple):
    """What one kernel became."""

    stack: int
    """bytes a thread"""
    spilled: int
    """bytes stored and loaded because registers ran out"""
    floats: list[str]
    """PTX instructions on floating-point numbers"""


# ------------------------------------------------------------------------------------------------- the script


def import_kernels() -> dict[str, Any]:
    """Every kernel of the library by name: all modules that take something from warpseed.compute.gpu are imported."""
    for path in sorted((LIBRARY / "warpseed").rglob("*.py")):
        if re.search(r"^from warpseed\.compute\.gpu import", path.read_text(), re.MULTILINE):
            importlib.import_module(".".join(path.relative_to(LIBRARY).with_suffix("").parts))
    from warpseed.compute.gpu import kernels

    return kernels


def small_index() -> Any:
    """An index of a few bases."""
    from warpseed import build_index

    with tempfile.TemporaryDirectory() as folder:
        fasta = Path(folder) / "tiny.fa"
        fasta.write_text(">tiny\n" + "ACGTTGCATGCCATGANN" * 20 + "\n")
        return build_index(fasta, parts=("fast", "paper"))


def arguments_of_kernels() -> dict[str, tuple[Any, ...]]:
    """Arguments as each kernel is launched with, on the host."""
    import numpy as np
    from warpseed.compute.appended import Appended
    from warpseed.ebwt.paper import Written
    from warpseed.fm_index.binned import binned_index
    from warpseed.fm_index.gpu_rows import Beyond
    from warpseed.fm_index.tagged import MOST_TABLE_LENGTH, TaggedIndex
    from warpseed.fm_index.text import PackedText
    from warpseed.kmer_seeds.fast import exact_neighbours, make_scheme
    from warpseed.kmer_seeds.gpu import COSTS
    from warpseed.kmer_seeds.gpu_look_ups import InexactSearch, Lists, strings_of
    from warpseed.kmer_seeds.gpu_paper import IntervalLists
    from warpseed.kmer_seeds.gpu_ways import ways_of
    from warpseed.kmer_seeds.kmers import pack_kmers
    from warpseed.mems.fast import how_for
    from warpseed.mems.gpu_fast import AppendedMatches, MatchSearch, OrientedReads
    from warpseed.mems.gpu_output import MatchColumns
    from warpseed.mems.gpu_paper import Started
    from warpseed.mems.matches import MATCH, SUPER, Criteria
    from warpseed.mems.output import MATCH_ROW
    from warpseed.mems.paper import Entries, Patterns
    from warpseed.one_error.gpu_fast import Oriented, ReadLookUps
    from warpseed.one_error.gpu_output import PlacementColumns
    from warpseed.one_error.output import LINES, PLACEMENT_ROW
    from warpseed.one_error.paper import Results
    from warpseed.output.device_columns import HitColumns
    from warpseed.output.lines import Tables, plan_of
    from warpseed.output.rows import HIT_ROW
    from warpseed.sequences.queries import Queries
    from warpseed.tree_bitmap.bitmap import new_bitmap
    from warpseed.tree_bitmap.edits import Neighbourhood
    from warpseed.tree_bitmap.gpu_direct import ShortKmers
    from warpseed.tree_bitmap.gpu_fast import KmerTable, PackedBlock, Stretch
    from warpseed.tree_bitmap.gpu_paper import MatchBuffer

    index = small_index()
    fast, paper = index.fast, index.forward
    kmers = pack_kmers(Queries.from_sequences(["ACGTNACGTACGATTACA" * 3]))
    words, rows, quadruples = np.zeros(8, np.uint64), np.zeros(8, np.uint32), np.zeros((8, 4), np.uint32)
    tagged = TaggedIndex(fast.text, words, fast.table, fast.segments, index.table_length, index.rows, 2, 99)
    text = PackedText(fast.text, fast.segments)
    scheme = make_scheme(kmers.lengths, 2, index.rows, index.table_length, COSTS)
    lists = Lists(words, words, quadruples, words)
    patterns = strings_of(scheme), ways_of(scheme, True), exact_neighbours(MOST_TABLE_LENGTH, 2)
    search = InexactSearch(tagged, kmers, scheme, *patterns, rows, 128, lists)
    inexact = (paper, paper, kmers, 2, 128, IntervalLists(words, rows, rows, words, words))
    found = Appended(words, words, rows, rows, words)
    look_ups = ReadLookUps(tagged, kmers, Oriented(words, words), 2, 1, 128, found, quadruples)
    borders = np.zeros(8, np.int64)
    how, matches = how_for(Criteria(20, SUPER, 2), index.table_length, index.rows), AppendedMatches(words, words, words)
    mems = MatchSearch(tagged, kmers, OrientedReads(words, words), how, borders, rows, matches, quadruples, True, 0, 99)
    binned, patterns = binned_index(index, 20), Patterns(rows, borders, rows, borders, 2)
    started, entries = Started(rows, rows), Entries(words, words, rows)
    hit, placement = (np.dtype(row.descr, align=True) for row in (HIT_ROW, PLACEMENT_ROW))
    match = np.dtype(MATCH.descr, align=True)
    hit_columns, placement_columns, match_columns = (
        kind(*(np.zeros(8, row[name]) for name in row.names or ()))
        for kind, row in ((HitColumns, HIT_ROW), (PlacementColumns, PLACEMENT_ROW), (MatchColumns, MATCH_ROW))
    )
    plan, names = plan_of(LINES["bed"].line, placement), Tables(*2 * (words.view(np.uint8), borders))
    lines = (words.view(np.uint8), 8, plan.parts, names, borders)
    near = Neighbourhood(words, 12, 1, 2)
    stream = KmerTable(np.zeros((8, 2), np.uint64), words, words, rows, words, 0, 15)
    block = PackedBlock(words, words, -32)
    short, stretch = ShortKmers(rows, words, words, 1), Stretch(0, 9, 0, 1)
    chunk = (words.view(np.uint8), 15, new_bitmap(8, 15), (0, 9))
    edits = (words.view(np.uint8), (15, 2), new_bitmap(8, 15), (0, 9), rows, MatchBuffer(words, words))
    prefixes = words.view(np.uint8).reshape(8, 8)
    flags = np.zeros(8, np.bool_)
    written, cuts = Written(prefixes, rows, rows), borders.reshape(4, 2)
    of_members = words.view(np.uint16), rows, cuts, borders, words, words
    between = *of_members, (rows, borders, 0, 9), (0, 1, 9, 2, 2), rows.reshape(4, 2)
    return {
        "write_conjugates": (words.view(np.uint8), borders, written),
        "number_conjugates": (9, rows),
        "exchange_pointers": (written, rows, 4, 2),
        "load_keys": (prefixes, borders, 8, words),
        "colour_ranks": (rows, rows, rows),
        "measure_pairs": (rows, rows.reshape(4, 2), borders),
        "mark_letters": (words.view(np.uint8), words, np.zeros(256, np.bool_)),
        "first_keys": (words.view(np.uint8), rows, borders, (2, 20), words),
        "sample_letters": (words.view(np.uint8), rows, borders, (2, 20), words),
        "keys_between": (words.view(np.uint8), rows, borders, (2, 20), (0, 9), words, words),
        "take_apart": (words, (words, rows, borders), (20, 22, 2, 16), (rows, flags, flags, words)),
        "put_packed": (words.view(np.uint8), 2, words),
        "next_keys": (rows, words, words.view(np.uint8), rows, borders, (22, 2, 44), words),
        "rank_keys": (rows, rows, rows, rows, borders, (32, 1, 20), words),
        "mark_heads": (words, borders, rows, rows, rows, rows),
        "number_starts": (rows, rows, rows, rows),
        "rank_groups": ((rows, rows, rows, rows), rows, rows, np.zeros(8, np.bool_)),
        "put_letters_before": (words.view(np.uint8), borders, words.view(np.uint16)),
        "put_last_letters": (words.view(np.uint16), rows, rows, 3, words.view(np.uint8), borders),
        "number_letters": (words.view(np.uint8), words, words.view(np.uint8), words),
        "put_words": (borders, rows),
        "put_colours": (rows, rows, words.view(np.uint16)),
        "cut_ranks": (rows, borders, 5, borders.reshape(4, 2)),
        "find_runs": (rows, words.view(np.uint16), borders, borders),
        "place_runs": (borders, borders, borders),
        "join_runs": (rows, borders, borders, 4, rows),
        "count_in_chunks": (words.view(np.uint16), 64, 2, words.reshape(2, 4)),
        "count_flags": (np.zeros(8, np.bool_), words, rows),
        "put_places": (np.zeros(8, np.bool_), words, borders, rows),
        "mask_members": (words.view(np.uint16), 5, rows, rows),
        "take_members": (words.view(np.uint16), 5, rows, rows, words, words.view(np.uint16)),
        "take_all_members": (words.view(np.uint16), words.view(np.uint16)),
        "make_sets": (words.view(np.uint16), words),
        "join_sets": (1, words.reshape(2, 4)),
        "count_warps": (borders.reshape(4, 2), 1, 5, (0, 0, 9, 0), borders.reshape(4, 2)),
        "put_owners": (borders, rows),
        "find_last": (rows, borders.reshape(4, 2), 1, borders),
        "count_between": between,
        "put_distances": (rows.reshape(4, 2), 1, 5, borders, rows, rows, rows.view(np.int32).reshape(4, 2)),
        "order_few": (words.view(np.uint8), rows, words.reshape(2, 4), rows.reshape(4, 2)),
        "group_few": (rows, words.reshape(2, 4), rows.reshape(4, 2)),
        "measure_few": (rows, rows.reshape(4, 2)),
        "put_few_letters": (words.view(np.uint8), rows, rows.reshape(4, 2)),
        "match_edits_naively": edits,
        "match_edits_efficiently": edits,
        "match_edits_in_queues": edits,
        "match_naively": (*chunk, rows, MatchBuffer(words, words)),
        "match_by_shuffle": (*chunk, (2, 16), MatchBuffer(words, words)),
        "pack_codes": (words, 0, words, words),
        "insert_kmers": (stream, block, stretch, words.view(np.uint8)),
        "insert_kmers_of_part": (stream, block, stretch, rows),
        "insert_known": (stream, words, 0, 1),
        "look_up_kmers": (stream, block, stretch, words.view(np.uint8)),
        "look_up_counts": (stream, words, 0, 1, rows.view(np.int32)),
        "move_slots": (stream, stream),
        "put_answers": (block, 12, stretch, words.view(np.uint8), words.view(np.uint8).reshape(2, -1), words),
        "count_new": (block, 12, stretch, words.view(np.uint8), borders),
        "list_new": (block, 12, stretch, words.view(np.uint8), borders, words, rows.view(np.int32)),
        "insert_short_kmers": (short, block, stretch, words.view(np.uint8)),
        "insert_short_kmers_of_part": (short, block, stretch, rows),
        "insert_short_known": (short, words, 0, 1),
        "count_short_kmers": (short, block, stretch),
        "look_up_short_counts": (short, words, rows.view(np.int32)),
        "spread_slots": (stream, short),
        "put_kmers": (words, 12, words),
        "put_neighbours": (words, 0),
        "look_up_places": (near, words, words, 9, words.view(np.uint8)),
        "make_hit_rows": (words, borders, 3, rows, fast.segments, np.zeros(8, hit)),
        "make_hit_columns": (words, borders, 3, rows, fast.segments, hit_columns),
        "make_placement_columns": (words, borders, 3, rows, fast.segments, placement_columns),
        "make_match_columns": (np.zeros(8, match), borders, 3, rows, fast.segments, match_columns),
        "spread_codes": (words.view(np.uint8), borders, words.view(np.uint8), borders),
        "pack_letters": (words.view(np.uint8), borders, rows, words, words, borders),
        "make_placement_rows": (words, borders, 3, rows, fast.segments, np.zeros(8, placement)),
        "size_lines": lines,
        "put_lines": (*lines, words.view(np.uint8)),
        "orient_words": (kmers, 2, OrientedReads(words, words)),
        "sample_seeds": (mems, 3, words),
        "append_matches": (mems,),
        "append_crowded_matches": (mems,),
        "note_longest": (mems,),
        "append_longest": (mems,),
        "append_crowded_longest": (mems,),
        "bound_ends": (kmers, SUPER, rows),
        "keep_matches": (matches, kmers, SUPER, rows, words, words, words, words),
        "put_matches": (words, words, borders, words, rows),
        "count_spans": (words, rows, borders, words, rows),
        "put_counted": (words, rows, borders, words, rows),
        "order_matches": (words, borders, words, words),
        "pack_pattern_words": (kmers, patterns),
        "assign_starts": (borders, 0, started),
        "find_intervals": (binned, patterns, started, 20, entries, rows),
        "compact_found": (entries, rows, borders, entries),
        "count_kept": (entries, rows),
        "compact_kept": (entries, borders, entries),
        "count_new_rows": (entries, borders),
        "count_matches": (entries, borders, 2, borders),
        "drop_reads": (entries, 2, 128, borders, borders),
        "split_intervals": (entries, borders, 0, rows, rows),
        "locate_matches": (binned, patterns, entries, rows, rows, words, words),
        "orient_reads": (kmers, 2, Oriented(words, words)),
        "append_placements": (look_ups,),
        "append_crowded_placements": (look_ups,),
        "append_two": (look_ups._replace(max_edits=2),),
        "append_crowded_two": (look_ups._replace(max_edits=2),),
        "place_words": (found, borders, words),
        "sort_few": (borders, words, words, rows),
        "sort_many": (borders, words, words, rows, rows),
        "sort_most": (borders, words, words, rows),
        "search_reads": (paper, kmers, 2, 25, borders, Results(rows, rows, rows), rows),
        "fill_device_table": (fast.text, fast.segments, fast.suffix_array, 4, rows, words),
        "fill_bases_before": (fast.text, words, rows),
        "fill_tagged_rows": (fast.text, fast.segments, fast.suffix_array, 4, words),
        "append_exact": (tagged, kmers, 128, True, words, rows, words),
        "append_inexact": (search, 1),
        "read_crowded": (search, words),
        "probe_crowded": (search, words),
        "look_deeper": (search, words),
        "close_ranks": (lists, 128, words),
        "settle_counts": (lists, 128),
        "paper_exact": (paper, kmers, rows, rows),
        "paper_inexact_32": inexact,
        "paper_inexact_255": inexact,
        "paper_locate": (paper, rows, words, rows, rows),
        "deal_out_suffixes": (text, 2, words, rows),
        "make_elements": (text, 2, rows, words),
        "take_rows": (words, rows, rows, np.zeros(8, np.bool_)),
        "ended_keys": (text, words, rows, words),
        "fill_table": (words, 3, 2, 9, 4, rows),
        "settle_few": (text, 17, rows, rows, rows),
        "deeper_keys": (17, rows, rows, rows, words),
        "fill_bwt": (text, rows, 128, words, quadruples, words, rows),
        "fill_rocc": (quadruples, rows),
        "reverse_words": (words, 99, words[0], words),
        "join_strands": (words, words, 99, words),
        "total_tiles": (words, borders),
        "sum_up_tiles": (words, borders),
        "count_strings": (text, 4, rows),
        "place_rows": (text, 4, Beyond(99, 0), rows, words),
        "sort_buckets": (tagged, words, rows),
        "sort_long_buckets": (tagged, words, rows, rows),
        "sort_longer_buckets": (tagged, words, rows, borders.reshape(4, 2)),
        "place_ended": (tagged,),
        "gather_sectors": (rows, 64, rows),
        "add_to_sectors": (rows, 64, 128),
        "touch_sectors": (rows, 64, 128),
        "count_hits_shown": (search,),
        "count_sectors": (search, words),
    }


def pretend_to_have(capability: tuple[int, int]) -> None:
    """Answer the question for the current device, which a call of an @njit function from a kernel asks."""
    import numba.cuda.dispatcher as dispatcher

    class Device:
        compute_capability = capability

    dispatcher.get_current_device = lambda: Device


def compile_kernel(function: Any, signature: tuple[Any, ...]) -> dict[str, Compiled]:
    """Once as far as LLVM's language; from there to PTX for each compute capability, and to machine code."""
    from numba.cuda.compiler import _compile_pyfunc_with_fixup

    library, _ = _compile_pyfunc_with_fixup(function.py_func, signature, device=False, abi="numba", cc=NEWEST)
    return {name: assemble(library.get_asm_str(cc=cc), cc, function.registers) for name, cc in CAPABILITIES.items()}


def assemble(ptx: str, capability: tuple[int, int], registers: int | None) -> Compiled:
    """To machine code, with what the assembler says about it."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(
        arch="sm_{}{}".format(*capability), max_register_count=registers, ptxas_options=["-v"], verbose=True
    )
    assert ".target sm_{}{}".format(*capability) in ptx
    linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
    linker.link("cubin")
    told = linker.get_info_log()
    # One line for the kernel, and one for each function that it calls and that was not inlined.
    memory = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", told)
    assert memory, told
    stack, stores, loads = (sum(map(int, column)) for column in zip(*memory, strict=True))
    floats = [line.strip() for line in ptx.splitlines() if FLOATING_POINT.search(line)]
    return Compiled(stack, stores + loads, floats)


def main() -> None:
    """Compile all kernels, and print what became of each; of one without arguments, null."""
    from numba import typeof

    kernels, arguments = import_kernels(), arguments_of_kernels()
    importlib.import_module("warpseed.compute.gpu_compiler")  # (which tells Numba what kernels name)
    pretend_to_have(NEWEST)
    report = {capability: dict[str, Any].fromkeys([*kernels, *arguments]) for capability in CAPABILITIES}
    for name in kernels.keys() & arguments.keys():
        signature = tuple(typeof(argument) for argument in arguments[name])
        try:
            for capability, compiled in compile_kernel(kernels[name], signature).items():
                report[capability][name] = compiled._asdict()
        except Exception as error:
            error.add_note(f"The kernel is {name}; arguments_of_kernels has to give what it is launched with.")
            raise
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()


# ------------------------------------------------------------------------------------------------- the tests


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What the script prints."""
    environment = os.environ | {"PYTHONPATH": str(LIBRARY)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=CAPABILITIES)
def compiled(request: pytest.FixtureRequest, report: dict[str, Any]) -> dict[str, Any]:
    """What every kernel became, for one compute capability."""
    return {name: facts and Compiled(**facts) for name, facts in report[request.param].items()}


def test_every_kernel_has_arguments_here(compiled: dict[str, Any]) -> None:
    """A new kernel needs an entry in `arguments_of_kernels`, and one that is gone loses its own."""
    assert [name for name, facts in compiled.items() if facts is None] == []
    assert {"append_exact", "append_inexact", "paper_exact", *OWN_STACK} <= set(compiled)


def test_no_kernel_computes_with_floating_point_numbers(compiled: dict[str, Any]) -> None:
    """A search counts and compares: such an instruction says that a type went wrong."""
    assert {name: facts.floats for name, facts in compiled.items() if facts and facts.floats} == {}


@pytest.mark.parametrize("compiled", ["9.0"], indirect=True)
def test_no_kernel_spills_registers(compiled: dict[str, Any]) -> None:
    """Nothing goes through local memory but what the paper's search keeps there."""
    assert {name: facts for name, facts in compiled.items() if facts and facts.spilled} == {}
    assert {name for name, facts in compiled.items() if facts and facts.stack} <= OWN_STACK
