"""Compiling with Numba: dispatchers for the library's functions, and entries that later processes call without it.

It is imported when something has to be compiled. No other file imports numba for the CPU but `compiled.py`, then, too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numba
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import typeof_impl
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype

from warpseed.compute.compiled import Compiled, Intrinsic
from warpseed.compute.objects import ENTRY, Code

__all__ = ["compile_entry", "dispatcher_of", "register_types"]

# Their types do not know all that they take and have.
types: Any = numba.types
_njit: Any = numba.njit


def dispatcher_of(py_func: Callable[..., Any], inline: bool) -> Any:
    """What Numba compiles a function with: without reference counting, and without what Python could call it by.

    Parameters
    ----------
    inline : whether its code becomes part of what calls it
    """
    return _njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=inline)(py_func)


_I32, _I64, _BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_ARRAY_OBJECT = ir.LiteralStructType(
    [ir.ArrayType(ir.IntType(8), object.__basicsize__), _BYTES, _I32, _I64.as_pointer(), _I64.as_pointer()]
)
"""How NumPy's C interface lays an array out: the object's head, data, number of dimensions, shape, strides."""


def register_types(typeof_impl: Any, target: Any) -> None:
    """Tell a target of Numba what our functions and instructions are when compiled code names them."""

    @typeof_impl.register(Compiled)
    def type_of_function(function: Compiled, context: Any) -> Any:
        return target.typing_context.resolve_value_type(function.dispatcher)

    @typeof_impl.register(Intrinsic)
    def type_of_intrinsic(instruction: Intrinsic, context: Any) -> Any:
        real = instruction.real  # may be new, which the context does not know yet
        target.typing_context.refresh()
        return target.typing_context.resolve_value_type(real)


register_types(typeof_impl, cpu_target)


def compile_entry(function: Compiled, arguments: tuple[Any, ...]) -> Code:
    """Machine code of a function and all that it calls, for arguments of these types.

    Raises
    ------
    numba.TypingError : the function does not fit them
    TypeError : it returns something else than numbers
    """
    signature = tuple(map(numba.typeof, arguments))
    dispatcher = function.dispatcher
    dispatcher.compile(signature)
    overload = dispatcher.overloads[signature]
    results = _letters_of(function, overload.signature.return_type)
    with global_compiler_lock:
        module = llvm.parse_assembly(overload.library.get_llvm_str())
        module.link_in(llvm.parse_assembly(str(_entry(dispatcher.targetctx, overload))))
        module.verify()
        return Code(results, overload.library.codegen._tm.emit_object(module))


def _letters_of(function: Compiled, result: Any) -> str:
    """What is returned, in letters of `struct`."""
    if isinstance(result, types.BaseTuple):
        return "(" + "".join(_letter_of(function, each) for each in result) + ")"
    return "" if result == types.none else _letter_of(function, result)


def _letter_of(function: Compiled, number: Any) -> str:
    if isinstance(number, types.Boolean):
        return "?7x"
    if isinstance(number, types.Integer):
        return "q" if number.signed else "Q"
    if isinstance(number, types.Float):
        return "d"
    raise TypeError(f"{function.name} returns {number}, but a compiled function returns numbers")


def _entry(context: Any, overload: Any) -> ir.Module:
    """A function of (words of the arguments, words of the results), int32: whether it failed."""
    described = overload.fndesc
    module = context.create_module(ENTRY)
    entry = ir.Function(module, ir.FunctionType(_I32, [_I64.as_pointer(), _I64.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    callee = context.declare_function(module, described)
    words = (builder.load(builder.gep(entry.args[0], [_I64(i)])) for i in count())
    values = [_value(context, builder, each, words) for each in described.argtypes]
    status, returned = context.call_conv.call_function(builder, callee, described.restype, described.argtypes, values)
    with builder.if_then(status.is_error):
        builder.ret(_I32(1))
    results = described.restype
    if isinstance(results, types.BaseTuple):
        for i, each in enumerate(results):
            _put(context, builder, each, builder.extract_value(returned, i), builder.gep(entry.args[1], [_I64(i)]))
    elif results != types.none:
        _put(context, builder, results, returned, entry.args[1])
    builder.ret(_I32(0))
    return module


def _value(context: Any, builder: ir.IRBuilder, wanted: Any, words: Any) -> ir.Value:
    """An argument, as Numba lays it out, of the next words."""
    if isinstance(wanted, types.BaseTuple):
        return context.make_tuple(builder, wanted, [_value(context, builder, each, words) for each in wanted])
    word = next(words)
    if isinstance(wanted, types.Array):
        return _array(context, builder, wanted, word)
    if isinstance(wanted, types.Float):
        return context.cast(builder, builder.bitcast(word, ir.DoubleType()), types.float64, wanted)
    if isinstance(wanted, types.Boolean):
        return builder.icmp_unsigned("!=", word, _I64(0))
    return context.cast(builder, word, types.int64, wanted)


def _array(context: Any, builder: ir.IRBuilder, wanted: Any, address: ir.Value) -> ir.Value:
    """A view of the array object at an address; it owns nothing."""
    held = builder.inttoptr(address, _ARRAY_OBJECT.as_pointer())

    def field(i: int) -> ir.Value:
        return builder.load(builder.gep(held, [_I32(0), _I32(i)], inbounds=True))

    data, shape, strides = field(1), field(3), field(4)
    array = make_array(wanted)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(data, context.get_data_type(wanted.dtype).as_pointer()),
        shape=[builder.load(builder.gep(shape, [_I64(i)])) for i in range(wanted.ndim)],
        strides=[builder.load(builder.gep(strides, [_I64(i)])) for i in range(wanted.ndim)],
        itemsize=as_dtype(wanted.dtype).itemsize,
        meminfo=None,
    )
    return array._getvalue()


def _put(context: Any, builder: ir.IRBuilder, given: Any, value: ir.Value, word: ir.Value) -> None:
    """Write a number that was returned as one word."""
    if isinstance(given, types.Float):
        wide = context.cast(builder, value, given, types.float64)
        builder.store(builder.bitcast(wide, _I64), word)
    else:
        builder.store(context.cast(builder, value, given, types.int64), word)
