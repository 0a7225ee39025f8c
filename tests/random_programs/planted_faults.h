// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/program/transform.h"
#include "tests/random_shardings.h"

#include <functional>
#include <utility>

/// Faults as a partitioner may make them, planted into a program on shards. Each says whether it found a place.
namespace meshwright::tests {

struct PlantedFault {
    const char* name;
    std::function<bool(DeviceFunction&, const Mesh&, Random&)> plant;
};

/// Changes the first op of a kind, from anywhere on, that `change` can change.
template <typename Change>
bool plantIn(DeviceFunction& function, Random& random, OpKind kind, const Change& change)
{
    std::vector<OpId> ops;
    forEachOp(function.function, [&](OpId id) {
        if (function.function[id].kind == kind)
            ops.push_back(id);
    });
    std::shuffle(ops.begin(), ops.end(), random);
    return std::any_of(ops.begin(), ops.end(), [&](OpId id) { return change(function.function[id]); });
}

/// The same of ops whose attributes are kept.
template <typename Change>
bool plantInKept(DeviceFunction& function, Random& random, OpKind kind, const Change& change)
{
    return plantIn(function, random, kind, [&](Op& op) { return change(op, op.as<OtherAttributes>().attributes); });
}

inline ReduceKind otherKind(ReduceKind kind)
{
    switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Product:
        return ReduceKind::Max;
    case ReduceKind::Max:
        return ReduceKind::Min;
    case ReduceKind::Min:
        return ReduceKind::Max;
    case ReduceKind::And:
        return ReduceKind::Or;
    default:
        return ReduceKind::And;
    }
}

inline void becomeIdentity(const Function& function, Op& op)
{
    op.kind = OpKind::Reshape;
    op.attributes = ReshapeAttributes{function[op.results.front()].type.shape};
}

/// Two different dimensions of one size, more than 1; nothing when there are none.
inline std::optional<std::pair<std::size_t, std::size_t>> equalDims(const Shape& shape)
{
    for (std::size_t a = 0; a < shape.size(); ++a) {
        for (std::size_t b = a + 1; b < shape.size(); ++b) {
            if (shape[a] == shape[b] && shape[a] > 1)
                return std::pair(a, b);
        }
    }
    return std::nullopt;
}

/// The axes of one dimension the other way round, or those of two dimensions exchanged.
inline bool disorder(TensorSharding& sharding, const Shape& shape)
{
    for (DimSharding& dim : sharding.dims) {
        if (dim.axes.size() > 1) {
            std::reverse(dim.axes.begin(), dim.axes.end());
            return true;
        }
    }
    for (std::size_t a = 0; a < shape.size(); ++a) {
        for (std::size_t b = a + 1; b < shape.size(); ++b) {
            if (shape[a] == shape[b] && sharding.dims[a].axes != sharding.dims[b].axes
                && shardCount(sharding.dims[a].axes) == shardCount(sharding.dims[b].axes)) {
                std::swap(sharding.dims[a], sharding.dims[b]);
                return true;
            }
        }
    }
    return false;
}

/// Exchanges a dimension that is contracted, or in the batch, for a free one of its size.
inline bool contractOther(std::vector<std::size_t>& chosen, const std::vector<std::size_t>& others, const Shape& shape)
{
    for (std::size_t& dim : chosen) {
        for (std::size_t free = 0; free < shape.size(); ++free) {
            const auto isIn
                = [&](const std::vector<std::size_t>& dims) { return std::find(dims.begin(), dims.end(), free) != dims.end(); };
            if (!isIn(chosen) && !isIn(others) && shape[free] == shape[dim] && shape[dim] > 1) {
                dim = free;
                return true;
            }
        }
    }
    return false;
}

inline bool shiftPadding(KeptAttributes& attributes)
{
    for (KeptAttribute& attribute : attributes) {
        if (attribute.name != "padding")
            continue;
        for (std::size_t i = 0; i + 1 < attribute.integers.size(); i += 2) {
            if (attribute.integers[i] + attribute.integers[i + 1] > 0) {
                ++attribute.integers[i];
                --attribute.integers[i + 1];
                return true;
            }
        }
    }
    return false;
}

/// An operand of an op becomes another value of its type that is there before it.
inline bool exchangeValue(Function& function, Random& random)
{
    std::vector<std::pair<OpId, std::size_t>> places;
    forEachOp(function, [&](OpId id) {
        for (std::size_t i = 0; i < function[id].operands.size(); ++i)
            places.emplace_back(id, i);
    });
    std::shuffle(places.begin(), places.end(), random);
    return std::any_of(places.begin(), places.end(), [&](const auto& place) {
        Op& op = function[place.first];
        const Block& block = function[function[op.results.empty() ? op.operands.front() : op.results.front()].block];
        std::vector<ValueId> others = block.arguments;
        for (const OpId before : block.ops) {
            if (before == place.first)
                break;
            others.insert(others.end(), function[before].results.begin(), function[before].results.end());
        }
        std::shuffle(others.begin(), others.end(), random);
        ValueId& operand = op.operands[place.second];
        const auto other = std::find_if(others.begin(), others.end(),
            [&](ValueId value) { return value != operand && function[value].type == function[operand].type; });
        if (other == others.end())
            return false;
        operand = *other;
        return true;
    });
}

/// An op becomes another one of its class that takes and makes the same.
inline bool exchangeKind(Function& function, Random& random)
{
    constexpr std::pair<OpKind, OpKind> kAlike[]
        = {{OpKind::Add, OpKind::Subtract}, {OpKind::Multiply, OpKind::Add}, {OpKind::Maximum, OpKind::Minimum},
            {OpKind::And, OpKind::Or}, {OpKind::Negate, OpKind::Abs}, {OpKind::Sine, OpKind::Cosine}};
    std::vector<OpId> ops;
    forEachOp(function, [&](OpId id) { ops.push_back(id); });
    std::shuffle(ops.begin(), ops.end(), random);
    return std::any_of(ops.begin(), ops.end(), [&](OpId id) {
        for (const auto& [one, other] : kAlike) {
            OpKind& kind = function[id].kind;
            if (kind == one || kind == other) {
                kind = kind == one ? other : one;
                return true;
            }
        }
        return false;
    });
}

/// What an op makes is said to lie in another order of the same pieces.
inline bool claimOtherwise(DeviceFunction& function, Random& random)
{
    std::vector<ValueId> values;
    forEachOp(function.function, [&](OpId id) {
        for (const ValueId result : function.function[id].results)
            values.push_back(result);
    });
    std::shuffle(values.begin(), values.end(), random);
    return std::any_of(values.begin(), values.end(), [&](ValueId value) {
        auto& sharding = function.function[value].sharding;
        return sharding && disorder(*sharding, function.function[value].type.shape);
    });
}

inline std::vector<PlantedFault> plantedFaults()
{
    using F = DeviceFunction;
    const auto collective = [](Op& op) -> CollectiveAttributes& { return op.as<CollectiveAttributes>(); };
    const auto identityOf = [](OpKind kind) {
        return [kind](F& f, const Mesh&, Random& random) {
            return plantIn(f, random, kind, [&](Op& op) {
                if (f.function[op.operands.front()].type != f.function[op.results.front()].type)
                    return false;
                becomeIdentity(f.function, op);
                return true;
            });
        };
    };
    const auto otherReduction = [collective](OpKind kind) {
        return [collective, kind](F& f, const Mesh&, Random& random) {
            return plantIn(f, random, kind, [&](Op& op) {
                collective(op).kind = otherKind(collective(op).kind);
                return true;
            });
        };
    };
    const auto changedSources = [collective](const std::function<bool(std::vector<std::int64_t>&)>& change) {
        return [collective, change](F& f, const Mesh&, Random& random) {
            return plantIn(f, random, OpKind::CollectivePermute, [&](Op& op) { return change(collective(op).sources); });
        };
    };
    /// Another axis of the mesh, of the same size, in the place of one.
    const auto otherAxis = [](AxisRefs& axes, const Mesh& mesh) {
        for (AxisRef& axis : axes) {
            for (std::size_t other = 0; other < mesh.axes().size(); ++other) {
                const auto index = static_cast<std::int32_t>(other);
                const bool isFree = std::none_of(axes.begin(), axes.end(), [&](const AxisRef& a) { return a.axis == index; });
                if (isFree && mesh.axes()[other].size > 1 && mesh.axes()[other].size >= axis.size) {
                    axis = {index, 1, mesh.axes()[other].size == axis.size ? axis.size : mesh.axes()[other].size};
                    return true;
                }
            }
        }
        return false;
    };
    return {
        {"an all-reduce over other devices",
            [=](F& f, const Mesh& mesh, Random& random) {
                return plantIn(f, random, OpKind::AllReduce, [&](Op& op) { return otherAxis(collective(op).axes, mesh); });
            }},
        {"an all-reduce over fewer devices",
            [=](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::AllReduce, [&](Op& op) {
                    if (collective(op).axes.size() < 2)
                        return false;
                    collective(op).axes.pop_back();
                    return true;
                });
            }},
        {"an all-reduce left out", identityOf(OpKind::AllReduce)},
        {"an all-reduce of another kind", otherReduction(OpKind::AllReduce)},
        {"a reduce-scatter of another kind", otherReduction(OpKind::ReduceScatter)},
        {"a permute left out", identityOf(OpKind::CollectivePermute)},
        {"a permute by one device further", changedSources([](std::vector<std::int64_t>& sources) {
             if (sources.size() < 2)
                 return false;
             std::rotate(sources.begin(), sources.begin() + 1, sources.end());
             return true;
         })},
        {"a permute with two receivers exchanged", changedSources([](std::vector<std::int64_t>& sources) {
             for (std::size_t i = 1; i < sources.size(); ++i) {
                 if (sources[i] != sources[0]) {
                     std::swap(sources[i], sources[0]);
                     return true;
                 }
             }
             return false;
         })},
        {"a permute that forgets a receiver", changedSources([](std::vector<std::int64_t>& sources) {
             for (std::int64_t& source : sources) {
                 if (source >= 0) {
                     source = -1;
                     return true;
                 }
             }
             return false;
         })},
        {"an all-slice by other devices",
            [=](F& f, const Mesh& mesh, Random& random) {
                return plantIn(f, random, OpKind::AllSlice, [&](Op& op) {
                    CollectiveAttributes& attributes = collective(op);
                    return std::any_of(attributes.perDim.begin(), attributes.perDim.end(),
                        [&](AxisRefs& axes) { return otherAxis(axes, mesh); });
                });
            }},
        {"an all-to-all of other dimensions",
            [=](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::AllToAll, [&](Op& op) {
                    CollectiveAttributes& attributes = collective(op);
                    if (attributes.moves.empty())
                        return false;
                    std::swap(attributes.moves.front().from, attributes.moves.front().to);
                    return true;
                });
            }},
        {"a slice shifted by one",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Slice, [&](Op& op) {
                    auto& slice = op.as<SliceAttributes>();
                    const Shape& whole = f.function[op.operands.front()].type.shape;
                    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
                        const std::int64_t by = slice.limits[dim] < whole[dim] ? 1 : -1;
                        if (slice.starts[dim] + by < 0 || slice.limits[dim] - slice.starts[dim] < 1)
                            continue;
                        slice.starts[dim] += by;
                        slice.limits[dim] += by;
                        return true;
                    }
                    return false;
                });
            }},
        {"a pad shifted by one",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Pad, [&](Op& op) {
                    auto& pad = op.as<PadAttributes>();
                    for (std::size_t dim = 0; dim < pad.low.size(); ++dim) {
                        if (pad.low[dim] + pad.high[dim] == 0 && pad.low[dim] == 0)
                            continue;
                        ++pad.low[dim];
                        --pad.high[dim];
                        return true;
                    }
                    return false;
                });
            }},
        {"parts in another order",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Concatenate, [&](Op& op) {
                    for (std::size_t i = 1; i < op.operands.size(); ++i) {
                        if (op.operands[i] != op.operands[0]
                            && f.function[op.operands[i]].type == f.function[op.operands[0]].type) {
                            std::swap(op.operands[i], op.operands[0]);
                            return true;
                        }
                    }
                    return false;
                });
            }},
        {"a transpose with dimensions exchanged",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Transpose, [&](Op& op) {
                    const auto dims = equalDims(f.function[op.results.front()].type.shape);
                    if (dims)
                        std::swap(op.as<TransposeAttributes>().permutation[dims->first],
                            op.as<TransposeAttributes>().permutation[dims->second]);
                    return dims.has_value();
                });
            }},
        {"a broadcast along another dimension",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::BroadcastInDim, [&](Op& op) {
                    auto& attributes = op.as<BroadcastAttributes>();
                    for (std::size_t& dim : attributes.dims) {
                        for (std::size_t other = 0; other < attributes.shape.size(); ++other) {
                            const bool isFree
                                = std::find(attributes.dims.begin(), attributes.dims.end(), other) == attributes.dims.end();
                            if (isFree && attributes.shape[other] == attributes.shape[dim] && attributes.shape[dim] > 1) {
                                dim = other;
                                return true;
                            }
                        }
                    }
                    return false;
                });
            }},
        {"a reversal left out", identityOf(OpKind::Reverse)},
        {"a mask the other way round",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Select, [&](Op& op) {
                    std::swap(op.operands[1], op.operands[2]);
                    return op.operands[1] != op.operands[2];
                });
            }},
        {"a mask by one too long",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Compare, [&](Op& op) {
                    auto& direction = op.as<CompareAttributes>().direction;
                    if (direction == CompareDirection::Less)
                        direction = CompareDirection::LessEqual;
                    else if (direction == CompareDirection::GreaterEqual)
                        direction = CompareDirection::Greater;
                    else
                        return false;
                    return true;
                });
            }},
        {"another identity",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Constant, [&](Op& op) {
                    auto& value = op.as<ConstantAttributes>().data.value;
                    if (auto* number = std::get_if<double>(&value))
                        *number = *number == 0.0 ? 1.0 : 0.0;
                    else if (auto* integer = std::get_if<std::int64_t>(&value))
                        *integer = *integer == 0 ? 1 : 0;
                    else
                        return false;
                    return true;
                });
            }},
        {"numbers counted along another dimension",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Iota, [&](Op& op) {
                    auto& iota = op.as<IotaAttributes>();
                    if (iota.type.shape.size() < 2)
                        return false;
                    iota.dim = (iota.dim + 1) % iota.type.shape.size();
                    return true;
                });
            }},
        {"numbers counted from the wrong start",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Iota, [&](Op& op) {
                    auto& sharding = f.function[op.results.front()].sharding;
                    return sharding && disorder(*sharding, op.as<IotaAttributes>().type.shape);
                });
            }},
        {"a reduction of another kind",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Reduce, [&](Op& op) {
                    op.as<ReduceAttributes>().kind = otherKind(op.as<ReduceAttributes>().kind);
                    return true;
                });
            }},
        {"a reduction of another dimension",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Reduce, [&](Op& op) {
                    return contractOther(op.as<ReduceAttributes>().dims, {}, f.function[op.operands.front()].type.shape);
                });
            }},
        {"a product over another dimension of the left",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::DotGeneral, [&](Op& op) {
                    auto& dot = op.as<DotAttributes>();
                    return contractOther(dot.lhsContracting, dot.lhsBatch, f.function[op.operands[0]].type.shape);
                });
            }},
        {"a product over another dimension of the right",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::DotGeneral, [&](Op& op) {
                    auto& dot = op.as<DotAttributes>();
                    return contractOther(dot.rhsContracting, dot.rhsBatch, f.function[op.operands[1]].type.shape);
                });
            }},
        {"a product by another batch",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::DotGeneral, [&](Op& op) {
                    auto& dot = op.as<DotAttributes>();
                    return contractOther(dot.rhsBatch, dot.rhsContracting, f.function[op.operands[1]].type.shape);
                });
            }},
        {"a part that begins elsewhere",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::DynamicSlice, [&](Op& op) {
                    for (std::size_t i = 2; i < op.operands.size(); ++i) {
                        if (op.operands[i] != op.operands[1]) {
                            std::swap(op.operands[i], op.operands[1]);
                            return true;
                        }
                    }
                    return false;
                });
            }},
        {"an update that begins elsewhere",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::DynamicUpdateSlice, [&](Op& op) {
                    for (std::size_t i = 3; i < op.operands.size(); ++i) {
                        if (op.operands[i] != op.operands[2]) {
                            std::swap(op.operands[i], op.operands[2]);
                            return true;
                        }
                    }
                    return false;
                });
            }},
        {"a scatter that puts instead of adding",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Scatter, [&](Op& op) {
                    auto& combiner = op.as<ScatterAttributes>().combiner;
                    return std::exchange(combiner, std::nullopt).has_value();
                });
            }},
        {"branches exchanged",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Case, [&](Op& op) {
                    std::swap(op.bodies[0], op.bodies[1]);
                    return true;
                });
            }},
        {"operands exchanged",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Subtract, [&](Op& op) {
                    std::swap(op.operands[0], op.operands[1]);
                    return op.operands[0] != op.operands[1];
                });
            }},
        {"windows shifted by one",
            [](F& f, const Mesh&, Random& random) {
                return plantInKept(
                    f, random, OpKind::ReduceWindow, [](Op&, KeptAttributes& attributes) { return shiftPadding(attributes); });
            }},
        {"a convolution shifted by one",
            [](F& f, const Mesh&, Random& random) {
                return plantInKept(
                    f, random, OpKind::Convolution, [](Op&, KeptAttributes& attributes) { return shiftPadding(attributes); });
            }},
        {"a sort along another dimension",
            [](F& f, const Mesh&, Random& random) {
                return plantInKept(f, random, OpKind::Sort, [&](Op& op, KeptAttributes& attributes) {
                    const auto rank = static_cast<std::int64_t>(f.function[op.operands.front()].type.shape.size());
                    for (KeptAttribute& attribute : attributes) {
                        if (attribute.name == "dimension" && rank > 1) {
                            attribute.integers[0] = (attribute.integers[0] + 1) % rank;
                            return true;
                        }
                    }
                    return false;
                });
            }},
        {"a value in the place of another", [](F& f, const Mesh&, Random& random) { return exchangeValue(f.function, random); }},
        {"a value in the place of another, again",
            [](F& f, const Mesh&, Random& random) {
                random.discard(1000);
                return exchangeValue(f.function, random);
            }},
        {"an op in the place of another", [](F& f, const Mesh&, Random& random) { return exchangeKind(f.function, random); }},
        {"a number that is one more",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Constant, [&](Op& op) {
                    auto* integer = std::get_if<std::int64_t>(&op.as<ConstantAttributes>().data.value);
                    if (integer == nullptr || f.function[op.results.front()].type.dtype == DType::Pred)
                        return false;
                    *integer += 1;
                    return true;
                });
            }},
        {"a value that is said to lie otherwise", [](F& f, const Mesh&, Random& random) { return claimOtherwise(f, random); }},
        {"a reduce-scatter over more devices",
            [=](F& f, const Mesh& mesh, Random& random) {
                return plantIn(f, random, OpKind::ReduceScatter, [&](Op& op) {
                    const AxisRefs others = unusedAxes(collective(op).axes, mesh);
                    collective(op).axes.insert(collective(op).axes.end(), others.begin(), others.end());
                    return !others.empty();
                });
            }},
        {"slices of a loop in the other order",
            [](F& f, const Mesh&, Random& random) {
                return plantIn(f, random, OpKind::Repeat, [&](Op& op) {
                    auto& repeat = op.as<RepeatAttributes>();
                    repeat.reversed = !repeat.reversed;
                    return repeat.count > 1;
                });
            }},
        {"results of a block exchanged",
            [](F& f, const Mesh&, Random& random) {
                for (std::size_t block = 0; block < f.function.blocks.size(); ++block) {
                    std::vector<ValueId>& results = f.function.blocks[block].results;
                    for (std::size_t i = 1; i < results.size(); ++i) {
                        const auto first = static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(i) - 1));
                        if (results[i] != results[first] && f.function[results[i]].type == f.function[results[first]].type
                            && f.function[results[i]].sharding == f.function[results[first]].sharding) {
                            std::swap(results[i], results[first]);
                            return true;
                        }
                    }
                }
                return false;
            }},
        {"a result's layout in another order",
            [](F& f, const Mesh&, Random&) {
                const std::vector<ValueId> results = f.function.results();
                return std::any_of(results.begin(), results.end(), [&](ValueId result) {
                    Value& value = f.function[result];
                    return value.sharding && disorder(*value.sharding, value.type.shape);
                });
            }},
        {"an argument's layout in another order",
            [](F& f, const Mesh&, Random&) {
                const std::vector<ValueId> arguments = f.function.arguments();
                return std::any_of(arguments.begin(), arguments.end(), [&](ValueId argument) {
                    Value& value = f.function[argument];
                    return value.sharding && disorder(*value.sharding, value.type.shape);
                });
            }},
    };
}

} // namespace meshwright::tests
