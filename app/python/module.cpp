// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/confine.h"
#include "app/python/executable.h"
#include "app/python/program_faults.h"
#include "app/python/trace.h"

#include "core/diagnose/peer_errors.h"
#include "core/mesh/device_mesh.h"
#include "core/sharding/notation.h"
#include "core/sharding/visualize.h"
#include "core/support/problem_handler.h"
#include "core/support/threefry.h"

#include <fmt/format.h>
#include <malloc.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <limits>

namespace py = pybind11;

namespace meshwright::python {

namespace {

/// Problems on their way to Python.
struct Raised {
    Problems problems;
};

template <typename T>
T valueOrRaise(Result<T> result)
{
    if (!result)
        throw Raised{result.error()};
    return *std::move(result);
}

/// JAX's classes: what does not fit the types is a TypeError, what does not fit the devices a ValueError.
PyObject* classOf(const std::string& id)
{
    if (id == "MW1521" || id == "MW1560")
        return PyExc_MemoryError;
    if (id.starts_with("MW13"))
        return PyExc_TypeError;
    return id.starts_with("MW11") || id.starts_with("MW12") ? PyExc_ValueError : PyExc_RuntimeError;
}

void raise(const Problems& problems)
{
    const Problem& first = problems.front();
    const py::object error = py::reinterpret_borrow<py::object>(classOf(first.id))(first.message);
    for (const Problem& problem : problems)
        error.attr("add_note")(describe(problem));
    py::setattr(error, "problem_id", py::str(first.id));
    py::setattr(error, "fix", py::str(first.fix));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

HostArray fromNumpy(const py::array& array, const std::string& dtypeName)
{
    const auto dtype = parseDType(dtypeName);
    if (!dtype)
        throw py::type_error(fmt::format("{} is not an element type", dtypeName));
    TensorType type{*dtype, Shape(array.shape(), array.shape() + array.ndim())};
    const py::array dense = py::array::ensure(array, py::array::c_style);
    return HostArray::fromBytes(
        std::move(type), std::span(static_cast<const std::byte*>(dense.data()), static_cast<std::size_t>(dense.nbytes())));
}

/// The name of NumPy's element type with the same bytes; those that it lacks are shown as u16 and u8.
const char* numpyName(DType dtype)
{
    switch (dtype) {
    case DType::Pred:
        return "bool";
    case DType::S4:
    case DType::S8:
        return "int8";
    case DType::S16:
        return "int16";
    case DType::S32:
        return "int32";
    case DType::S64:
        return "int64";
    case DType::U4:
    case DType::U8:
        return "uint8";
    case DType::U16:
        return "uint16";
    case DType::U32:
        return "uint32";
    case DType::U64:
        return "uint64";
    case DType::F16:
        return "float16";
    case DType::F32:
        return "float32";
    case DType::F64:
        return "float64";
    case DType::BF16:
        return "uint16";
    case DType::C64:
        return "complex64";
    case DType::C128:
        return "complex128";
    default:
        return "uint8";
    }
}

py::array toNumpy(const Piece& piece)
{
    // Memory is mapped before anything of it is there: an array larger than what may be had is refused by the allocation of its pieces.
    const py::capsule owner(new Piece(piece), [](void* held) { delete static_cast<Piece*>(held); });
    py::array array(py::dtype(numpyName(piece->type().dtype)), piece->type().shape, piece->data(), owner);
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return array;
}

template <typename T>
std::vector<T> listOf(const py::iterable& items)
{
    std::vector<T> list;
    for (const py::handle item : items)
        list.push_back(item.cast<T>());
    return list;
}

/// A device as pages know it: its number, its chip's place, its core on the chip, and its process.
using DeviceRow = std::tuple<DeviceId, std::array<std::int64_t, 3>, std::int64_t, std::int64_t>;

std::vector<DeviceId> deviceMesh(const std::vector<std::int64_t>& logical, const std::string& kindName,
    const std::vector<DeviceRow>& rows, bool isContiguous, bool allowSplit)
{
    std::vector<PlacedDevice> devices;
    for (const auto& [id, chip, core, process] : rows)
        devices.push_back({.id = id, .chip = chip, .core = core, .process = process});
    return valueOrRaise(createDeviceMesh(logical, valueOrRaise(deviceKindOf(kindName)), devices, {isContiguous, allowSplit}))
        .devices;
}

py::list collectivesOfCall(const Executable& executable)
{
    py::list list;
    for (const CollectiveCall& call : executable.collectives()) {
        py::dict row;
        row["op"] = call.op;
        row["axes"] = call.axes;
        row["count"] = call.count;
        row["bytes_per_device"] = call.bytesPerDevice;
        row["value"] = call.value;
        row["cause"] = call.reason;
        list.append(row);
    }
    return list;
}

void defineLayouts(py::module_& module)
{
    py::class_<Mesh>(module, "Mesh")
        .def(py::init(
            [](const std::vector<std::int64_t>& shape, std::vector<DeviceId> devices, const std::vector<std::string>& names) {
                return valueOrRaise(Mesh::fromArray(shape, std::move(devices), names));
            }))
        .def_property_readonly("names", &Mesh::axisNames)
        .def_property_readonly("order", &Mesh::deviceOrder)
        .def_property_readonly("sizes",
            [](const Mesh& mesh) {
                std::vector<std::int64_t> sizes;
                for (const MeshAxis& axis : mesh.axes())
                    sizes.push_back(axis.size);
                return sizes;
            })
        .def("text", [](const Mesh& mesh) { return jaxMeshText(mesh); })
        .def("__eq__", [](const Mesh& a, const Mesh& b) { return a == b; });

    py::class_<Placement, std::shared_ptr<Placement>>(module, "Placement")
        .def_readonly("mesh", &Placement::mesh)
        .def_readonly("number", &Placement::number)
        .def_readonly("is_named", &Placement::isNamed)
        .def_property_readonly("rank", [](const Placement& placement) { return placement.sharding.dims.size(); })
        .def_property_readonly("is_replicated", [](const Placement& placement) { return placement.sharding.isReplicated(); })
        .def_property_readonly("unreduced",
            [](const Placement& placement) {
                std::vector<std::string> axes;
                for (const AxisRef& axis : placement.sharding.unreduced)
                    axes.push_back(placement.mesh.axes()[static_cast<std::size_t>(axis.axis)].name);
                return axes;
            })
        .def("spec",
            [](const Placement& placement) -> py::object {
                const auto spec = toSpec(placement.sharding, placement.mesh);
                return spec ? py::cast(spec->dims) : py::none();
            })
        .def("text",
            [](const Placement& placement, const std::string& notation) {
                return valueOrRaise(printSharding(placement.sharding, placement.mesh, valueOrRaise(notationOf(notation)))).text;
            })
        .def("box",
            [](const Placement& placement, const Shape& shape, std::int64_t position) {
                std::vector<std::pair<std::int64_t, std::int64_t>> box;
                for (const IndexRange& range : placement.boxAt(shape, position))
                    box.emplace_back(range.start, range.stop);
                return box;
            })
        .def("draw",
            [](const Placement& placement, const Shape& shape, const std::string& platform, double scale) {
                TextDrawing drawing;
                drawing.platform = platform;
                drawing.scale = scale;
                return drawingText(layoutOf(shape, placement.sharding, placement.mesh), drawing);
            })
        .def("same", [](const Placement& a, const Placement& b, const Shape& shape) { return sameLayout(shape, a, b); });

    const auto constant = [](const PlacementPointer& placement) { return std::const_pointer_cast<Placement>(placement); };
    module.def("named", [=](const Mesh& mesh, const std::string& spec, const Shape& shape) {
        return constant(valueOrRaise(namedPlacement(mesh, spec, shape)));
    });
    module.def("positional", [=](const std::string& text, const std::vector<DeviceId>& devices, const Shape& shape) {
        return constant(valueOrRaise(positionalPlacement(text, devices, shape)));
    });
    module.def("single", [=](DeviceId device, std::size_t rank) { return constant(onDevice(device, rank)); });
    module.def("positional_text", [](const std::string& operations, const std::string& platform) {
        return valueOrRaise(parsePositional(operations)).text(platform);
    });
    module.def("device_mesh", deviceMesh);
    module.def("tpu_devices", [](const std::string& kind, const std::vector<std::int64_t>& topology) {
        std::vector<DeviceRow> rows;
        for (const PlacedDevice& device : valueOrRaise(tpuDevices(valueOrRaise(deviceKindOf(kind)), topology)))
            rows.emplace_back(device.id, device.chip, device.core, device.process);
        return rows;
    });
    module.def(
        "jax_verdict",
        [](const std::string& spec, const Mesh* mesh, const std::optional<Shape>& shape, const std::string& place,
            const std::string& argument) -> py::object {
            PeerRequest request{spec};
            if (mesh != nullptr)
                request.mesh = *mesh;
            request.shape = shape;
            request.place = place == "in" ? PeerPlace::ShardMapIn
                : place == "out"          ? PeerPlace::ShardMapOut
                : place == "type"         ? PeerPlace::Type
                                          : PeerPlace::Array;
            request.argument = argument;
            const PeerVerdict verdict = jaxVerdict(request);
            return verdict ? py::object(py::make_tuple(verdict->exception, verdict->messages.front())) : py::none();
        },
        py::arg("spec"), py::arg("mesh"), py::arg("shape") = py::none(), py::arg("place") = "array",
        py::arg("argument") = "NamedSharding");
}

void defineArrays(py::module_& module)
{
    const auto constant = [](const PlacementPointer& placement) { return std::const_pointer_cast<Placement>(placement); };
    py::class_<PlacedArray, ArrayPointer>(module, "Array")
        .def_property_readonly("shape", [](const PlacedArray& array) { return py::tuple(py::cast(array.type().shape)); })
        .def_property_readonly("dtype", [](const PlacedArray& array) { return dtypeName(array.type().dtype); })
        .def_property_readonly("key", &PlacedArray::key)
        .def_property_readonly("placement", [=](const PlacedArray& array) { return constant(array.placement()); })
        .def_property_readonly("is_committed", &PlacedArray::isCommitted)
        .def_property_readonly("is_ready", &PlacedArray::isReady)
        .def_property_readonly("is_deleted", &PlacedArray::isDeleted)
        .def("delete", &PlacedArray::markDeleted)
        .def("pending_flops", [](const ArrayPointer& array) { return pendingFlops(array); })
        .def("compute",
            [](const ArrayPointer& array, double mostFlops) {
                const py::gil_scoped_release released;
                valueOrRaise(compute(array, mostFlops));
            })
        .def("numpy", [](const PlacedArray& array) { return toNumpy(array.whole()); })
        .def("piece", [](const PlacedArray& array, std::size_t position) { return toNumpy(array.pieces().at(position)); })
        .def("moved", [](const ArrayPointer& array, const std::shared_ptr<Placement>& placement, bool committed) {
            return valueOrRaise(moved(array, placement, committed));
        });
    module.def("array", [](const py::array& array, const std::string& dtype, DeviceId device) {
        return PlacedArray::of(fromNumpy(array, dtype), device);
    });
    // Elements as another type: how NumPy, which lacks some, sees them.
    module.def("converted", [](const py::array& array, const std::string& from, const std::string& to) {
        return toNumpy(std::make_shared<const HostArray>(fromNumpy(array, from).converted(*parseDType(to))));
    });
    module.def("key_of_seed", [](std::uint64_t seed) { return keyOfSeed(seed); });
    module.def("split_key",
        [](const RandomKey& key, std::size_t count, bool partitionable) { return splitKey(key, count, partitionable); });
    module.def("fold_in", [](const RandomKey& key, std::uint32_t data) { return foldIn(key, data); });
    module.def("permutation", [](const RandomKey& key, std::int64_t count, bool partitionable) {
        return randomPermutation(key, count, partitionable);
    });
}

std::vector<int> numbersOf(const std::vector<ValueId>& values)
{
    std::vector<int> numbers;
    for (const ValueId value : values)
        numbers.push_back(static_cast<int>(value.at()));
    return numbers;
}

std::vector<ValueId> valuesOf(const std::vector<int>& numbers)
{
    std::vector<ValueId> values;
    for (const int number : numbers)
        values.emplace_back(std::int32_t{number});
    return values;
}

/// As Python's objects have them.
std::vector<std::shared_ptr<Placement>> withoutConst(const std::vector<PlacementPointer>& placements)
{
    std::vector<std::shared_ptr<Placement>> all;
    for (const PlacementPointer& placement : placements)
        all.push_back(std::const_pointer_cast<Placement>(placement));
    return all;
}

std::vector<std::tuple<std::size_t, std::size_t, std::string>> rowsOf(
    std::vector<DimOverAxis> (*find)(const Function&, const std::vector<NamedMesh>&), const Program& program)
{
    std::vector<std::tuple<std::size_t, std::size_t, std::string>> rows;
    for (const DimOverAxis& row : find(program.functions.front(), program.meshes))
        rows.emplace_back(row.index, row.dim, row.axis);
    return rows;
}

void definePrograms(py::module_& module)
{
    py::class_<TracedFunction>(module, "Function")
        .def_property_readonly("result_types",
            [](const TracedFunction& traced) {
                std::vector<std::pair<std::string, Shape>> types;
                for (const ValueId result : traced.function.results())
                    types.emplace_back(dtypeName(traced.function[result].type.dtype), traced.function[result].type.shape);
                return types;
            })
        .def("with_cotangents",
            [](const TracedFunction& traced, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds,
                bool isOne) { return valueOrRaise(withCotangents(traced, wrt, seeds, isOne)); });

    py::class_<Trace>(module, "Trace")
        .def(py::init<std::string>())
        .def("argument",
            [](Trace& trace, const std::string& dtype, const Shape& shape, const std::string& name) {
                return static_cast<int>(trace.argument({*parseDType(dtype), shape}, name).at());
            })
        .def("type",
            [](const Trace& trace, int value) {
                const TensorType& type = trace.type(ValueId(std::int32_t{value}));
                return py::make_tuple(dtypeName(type.dtype), py::tuple(py::cast(type.shape)));
            })
        .def("add",
            [](Trace& trace, const std::string& op, const std::vector<int>& operands, const Attributes& attributes) {
                return numbersOf(valueOrRaise(trace.add(op, valuesOf(operands), attributes)));
            })
        .def("constant",
            [](Trace& trace, const py::array& array, const std::string& dtype) {
                return static_cast<int>(trace.constant(fromNumpy(array, dtype)).at());
            })
        .def("constrain",
            [](Trace& trace, int operand, const std::shared_ptr<Placement>& placement) {
                return static_cast<int>(trace.constrain(ValueId(std::int32_t{operand}), *placement).at());
            })
        .def("call",
            [](Trace& trace, const TracedFunction& callee, const std::vector<int>& operands) {
                return numbersOf(trace.call(callee, valuesOf(operands)));
            })
        .def("custom",
            [](Trace& trace, const TracedFunction& rule, std::size_t reads, const std::vector<int>& values,
                const std::vector<int>& inputs, const std::vector<int>& read) {
                return numbersOf(trace.custom(rule, reads, valuesOf(values), valuesOf(inputs), valuesOf(read)));
            })
        .def("repeat",
            [](Trace& trace, const TracedFunction& body, const std::vector<std::size_t>& used, const std::vector<int>& operands,
                std::int64_t count, std::size_t carries, std::size_t stacked, bool reversed) {
                return numbersOf(
                    valueOrRaise(trace.repeat({body, used}, valuesOf(operands), {count, carries, stacked, reversed})));
            })
        .def("while_loop",
            [](Trace& trace, const TracedFunction& condition, const std::vector<std::size_t>& usedByCondition,
                const TracedFunction& body, const std::vector<std::size_t>& usedByBody, const std::vector<int>& operands,
                std::size_t carries) {
                return numbersOf(
                    valueOrRaise(trace.whileLoop({condition, usedByCondition}, {body, usedByBody}, valuesOf(operands), carries)));
            })
        .def("choose", // each branch with the operands that it takes, from the one behind the choice on
            [](Trace& trace, const py::list& branches, const std::vector<int>& operands) {
                std::vector<LoopBlock> blocks;
                for (const py::handle branch : branches) {
                    const auto pair = branch.cast<py::tuple>();
                    blocks.push_back({pair[0].cast<const TracedFunction&>(), pair[1].cast<std::vector<std::size_t>>()});
                }
                return numbersOf(valueOrRaise(trace.choose(blocks, valuesOf(operands))));
            })
        .def("manual",
            [](Trace& trace, const TracedFunction& body, const std::vector<int>& operands, const Mesh& mesh,
                const std::vector<std::string>& in, const std::vector<std::string>& out) {
                const auto shardings = [&](const std::vector<std::string>& specs, const std::vector<std::size_t>& ranks) {
                    std::vector<TensorSharding> all;
                    for (std::size_t i = 0; i < specs.size(); ++i)
                        all.push_back(valueOrRaise(onMesh(valueOrRaise(parseJaxSpec(specs[i])), ranks[i], mesh)).sharding);
                    return all;
                };
                std::vector<std::size_t> inRanks;
                std::vector<std::size_t> outRanks;
                for (const int operand : operands)
                    inRanks.push_back(trace.type(ValueId(std::int32_t{operand})).shape.size());
                for (const ValueId result : body.function.results())
                    outRanks.push_back(body.function[result].type.shape.size());
                return numbersOf(
                    valueOrRaise(trace.manual(body, valuesOf(operands), mesh, shardings(in, inRanks), shardings(out, outRanks))));
            })
        .def("collective",
            [](Trace& trace, const std::string& op, const std::vector<int>& operands, const Mesh& mesh,
                const std::vector<std::string>& axes, const Attributes& attributes) {
                return static_cast<int>(valueOrRaise(trace.collective(op, valuesOf(operands), mesh, axes, attributes)).at());
            })
        .def("finished", [](const Trace& trace, const std::vector<int>& results) { return trace.finished(valuesOf(results)); });

    py::class_<Executable, std::shared_ptr<Executable>>(module, "Executable")
        .def("__call__",
            [](Executable& executable, const py::list& arguments) {
                return valueOrRaise(executable.call(listOf<ArrayPointer>(arguments)));
            })
        .def_property_readonly("name", &Executable::name)
        .def_property_readonly("flops", &Executable::flops)
        .def_property_readonly("collectives", &collectivesOfCall)
        .def_property_readonly("repeated_axes", &Executable::repeatedAxes)
        .def_property_readonly(
            "arguments", // (name, number of dimensions, whether it was placed so that devices have parts of it)
            [](const Executable& executable) {
                const Function& function = executable.propagated().functions.front();
                std::vector<std::tuple<std::string, std::size_t, bool>> rows;
                for (const ValueId argument : function.arguments()) {
                    const Value& value = function[argument];
                    rows.emplace_back(value.name, value.type.shape.size(),
                        !value.annotation.empty() && value.sharding && !value.sharding->isReplicated());
                }
                return rows;
            })
        .def_property_readonly("gathered_results", // (result, dimension, axis)
            [](const Executable& executable) { return rowsOf(gatheredResults, executable.propagated()); })
        .def_property_readonly("arguments_taken_apart", // (argument, dimension, axis)
            [](const Executable& executable) { return rowsOf(argumentsTakenApart, executable.propagated()); })
        .def_property_readonly("gathered_and_taken_apart", // (type, axis)
            [](const Executable& executable) {
                return gatheredAndTakenApart(executable.propagated().functions.front(), executable.propagated().meshes);
            })
        .def_property_readonly("meshes", // of the results
            [](const Executable& executable) {
                std::vector<Mesh> meshes;
                for (const PlacementPointer& placement : executable.resultPlacements())
                    meshes.push_back(placement->mesh);
                return meshes;
            })
        .def_property_readonly(
            "argument_placements", [](const Executable& executable) { return withoutConst(executable.argumentPlacements()); })
        .def_property_readonly(
            "result_placements", [](const Executable& executable) { return withoutConst(executable.resultPlacements()); })
        .def_property_readonly("counts", // ((flops, transcendentals) of the whole program, those of each device)
            [](const Executable& executable) {
                const auto pair = [](const OperationCounts& counts) { return std::pair(counts.flops, counts.transcendentals); };
                return std::pair(pair(executable.wholeCounts()), pair(executable.deviceCounts()));
            })
        .def("text", &Executable::text)
        .def("device_text", &Executable::deviceText)
        .def("memory", // (of each argument, of each result, temporaries, on the host), bytes of a device
            [](const Executable& executable) {
                const MemoryUse use = executable.memory();
                return py::make_tuple(use.arguments, use.results, use.temporaries, use.onHost);
            })
        .def("seconds_on", [](const Executable& executable, const SimulatedMachine& there) {
            return valueOrRaise(executable.secondsOn(there));
        });
    py::class_<SimulatedMachine>(module, "Machine").def(py::init([](const std::string& name) {
        return valueOrRaise(SimulatedMachine::named(name));
    }));
    module.def("compile", [](const TracedFunction& traced, const py::list& arguments, const py::list& results) {
        std::vector<PlacementPointer> places;
        for (const py::handle result : results)
            places.push_back(result.is_none() ? nullptr : result.cast<std::shared_ptr<Placement>>());
        return valueOrRaise(Executable::compile(traced, listOf<ArrayPointer>(arguments), places));
    });
}

} // namespace

PYBIND11_MODULE(_meshwright, module)
{
    module.doc() = "Meshwright's engine: arrays on virtual devices, and programs of ops on them.";
    py::register_exception_translator([](std::exception_ptr raised) {
        try {
            if (raised)
                std::rethrow_exception(raised);
        } catch (const Raised& found) {
            raise(found.problems);
        }
    });
    setProblemHandler([](const Problems& problems) { throw Raised{problems}; }); // a page may catch what it caused
    defineLayouts(module);
    defineArrays(module);
    definePrograms(module);
    // Arrays of up to 32 MiB (glibc takes no more) come from the heap, and freed ones stay there for the next call's results: new memory would have to be
    // cleared by the system each time.
    module.def("keep_freed_memory", [](std::int64_t bytes) {
        constexpr int kLargestOfHeap = 32 << 20;
        mallopt(M_MMAP_THRESHOLD, kLargestOfHeap);
        mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min<std::int64_t>(bytes, std::numeric_limits<int>::max())));
    });
    module.def("confine", [](std::vector<std::string> readable, std::vector<std::string> writable) {
        valueOrRaise(confine({std::move(readable), std::move(writable)}));
    });
}

} // namespace meshwright::python
