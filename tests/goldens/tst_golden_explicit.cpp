// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_costs.h"
#include "core/partition/partition.h"
#include "core/program/builder.h"
#include "core/program/shape_rules.h"
#include "core/program/verify.h"
#include "tests/goldens/golden_runner.h"
#include "tests/test_class.h"

#include <map>
#include <optional>
#include <stdexcept>

namespace tst_golden_explicit {

namespace {

using namespace meshwright;
using namespace meshwright::goldens;

/// A case that no op of ours says.
struct UnsupportedCase : std::runtime_error {
    using std::runtime_error::runtime_error;
};

const std::map<std::string, OpKind> kUnary = {{"neg", OpKind::Negate}, {"abs", OpKind::Abs}, {"sign", OpKind::Sign},
    {"exp", OpKind::Exp}, {"log", OpKind::Log}, {"log1p", OpKind::Log1p}, {"tanh", OpKind::Tanh}, {"logistic", OpKind::Logistic},
    {"sqrt", OpKind::Sqrt}, {"rsqrt", OpKind::Rsqrt}, {"sin", OpKind::Sine}, {"cos", OpKind::Cosine}, {"floor", OpKind::Floor},
    {"ceil", OpKind::Ceil}, {"round", OpKind::RoundNearestAway}, {"tan", OpKind::Tan}, {"cbrt", OpKind::Cbrt},
    {"expm1", OpKind::Expm1}, {"erf", OpKind::Erf}, {"erfc", OpKind::Erfc}, {"erf_inv", OpKind::ErfInv},
    {"square", OpKind::Square}, {"integer_pow", OpKind::Abs}, {"copy", OpKind::Abs}, {"convert_element_type", OpKind::Abs},
    {"astype", OpKind::Abs}};
const std::map<std::string, OpKind> kBinary = {{"add", OpKind::Add}, {"sub", OpKind::Subtract}, {"mul", OpKind::Multiply},
    {"div", OpKind::Divide}, {"rem", OpKind::Remainder}, {"max", OpKind::Maximum}, {"min", OpKind::Minimum},
    {"pow", OpKind::Power}, {"atan2", OpKind::Atan2}, {"maximum", OpKind::Maximum}, {"minimum", OpKind::Minimum}};
const std::map<std::string, ReduceKind> kReductions
    = {{"reduce_sum", ReduceKind::Sum}, {"reduce_max", ReduceKind::Max}, {"reduce_min", ReduceKind::Min},
        {"reduce_prod", ReduceKind::Product}, {"sum", ReduceKind::Sum}, {"argmax", ReduceKind::Max}, {"argmin", ReduceKind::Min}};

/// A case as a function of ours.
class ExplicitCase {
public:
    explicit ExplicitCase(const Json& json)
        : m_json(json)
        , m_attrs(json.value("attrs", Json::object()))
        , m_mesh(valueOf(meshOf(json.at("mesh"))))
        , m_builder(function)
    {
        const bool isPredicate = json.at("op") == "select";
        for (const Json& operand : json.at("operands")) {
            const Shape shape = operand.at("shape").get<Shape>();
            const DType dtype = isPredicate && m_operands.empty() ? DType::Pred : DType::F32;
            m_operands.push_back(m_builder.argument({dtype, shape}));
            annotate(m_operands.back(), operand.at("spec"), m_attrs.value("drop_size_one_axes", false));
        }
        m_builder.setResults({makeOp(json.at("op").get<std::string>())});
    }

    const Mesh& mesh() const { return m_mesh; }

    TensorSharding specOn(const Json& spec, std::size_t rank, bool dropSizeOne = false) const
    {
        auto sharding = explicitSharding(specOf(spec), rank, m_mesh, dropSizeOne);
        if (!sharding)
            throw std::runtime_error(describe(sharding.error()));
        return *std::move(sharding);
    }

    AxisRefs axesOf(const Json& names) const
    {
        AxisRefs axes;
        for (const Json& name : names) {
            for (std::size_t axis = 0; axis < m_mesh.axes().size(); ++axis) {
                if (m_mesh.axes()[axis].name == name.get<std::string>())
                    axes.push_back(wholeAxis(m_mesh, axis));
            }
        }
        std::sort(axes.begin(), axes.end());
        return axes;
    }

    Function function;
    std::vector<std::pair<ValueId, Json>> also; ///< other values whose specs the case states

private:
    void annotate(ValueId value, const Json& spec, bool dropSizeOne = false)
    {
        function[value].sharding = specOn(spec, function[value].type.shape.size(), dropSizeOne);
        function[value].annotation = "case";
    }

    const Shape& shape(std::size_t operand) const { return function[m_operands[operand]].type.shape; }

    /// Negative dimensions count from the end.
    std::vector<std::size_t> dims(const char* key, std::size_t rank) const
    {
        std::vector<std::size_t> found;
        const Json& given = m_attrs.at(key);
        for (const Json& dim : given.is_array() ? given : Json::array({given})) {
            const auto at = dim.get<std::int64_t>();
            found.push_back(static_cast<std::size_t>(at < 0 ? at + static_cast<std::int64_t>(rank) : at));
        }
        std::sort(found.begin(), found.end());
        return found;
    }

    ValueId add(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes = {})
    {
        std::vector<TensorType> types;
        for (const ValueId operand : operands)
            types.push_back(function[operand].type);
        if (const auto results = resultTypes(kind, attributes, types); !results)
            throw std::runtime_error(describe(results.error()));
        const ValueId made = m_builder.add(kind, std::move(operands), std::move(attributes));
        if (m_attrs.contains("out_sharding")) {
            annotate(made, m_attrs.at("out_sharding"));
            if (m_attrs.contains("out_unreduced"))
                function[made].sharding->unreduced = axesOf(m_attrs.at("out_unreduced"));
        }
        return made;
    }

    /// As jax.numpy broadcasts: sizes of 1 and missing dimensions are stretched.
    ValueId stretched(ValueId value, const Shape& to)
    {
        const Shape& from = function[value].type.shape;
        if (from == to)
            return value;
        std::vector<std::size_t> at;
        for (std::size_t dim = 0; dim < from.size(); ++dim)
            at.push_back(to.size() - from.size() + dim);
        return m_builder.broadcast(value, to, at);
    }

    std::vector<ValueId> broadcastOperands()
    {
        Shape to;
        for (const ValueId operand : m_operands) {
            Shape own = function[operand].type.shape;
            if (to.size() < own.size())
                to.insert(to.begin(), own.size() - to.size(), 1);
            own.insert(own.begin(), to.size() - own.size(), 1);
            for (std::size_t dim = 0; dim < to.size(); ++dim)
                to[dim] = std::max(to[dim], own[dim]);
        }
        std::vector<ValueId> values;
        for (const ValueId operand : m_operands)
            values.push_back(stretched(operand, to));
        return values;
    }

    ValueId dot(ValueId lhs, ValueId rhs, DotAttributes attributes)
    {
        attributes.resultType = DType::F32;
        attributes.operandType = DType::F32;
        return add(OpKind::DotGeneral, {lhs, rhs}, std::move(attributes));
    }

    DotAttributes matmulDims() const
    {
        DotAttributes attributes;
        const std::size_t rank = shape(0).size();
        for (std::size_t dim = 0; dim + 2 < std::min(rank, shape(1).size()); ++dim) {
            attributes.lhsBatch.push_back(dim);
            attributes.rhsBatch.push_back(dim);
        }
        attributes.lhsContracting = {rank - 1};
        attributes.rhsContracting = {shape(1).size() < 2 ? 0 : shape(1).size() - 2};
        return attributes;
    }

    DotAttributes dotDims() const
    {
        const auto side = [&](const char* key, std::size_t which) {
            return m_attrs.contains(key) ? m_attrs.at(key).at(which).get<std::vector<std::size_t>>() : std::vector<std::size_t>();
        };
        DotAttributes attributes;
        attributes.lhsContracting = side("contracting_dims", 0);
        attributes.rhsContracting = side("contracting_dims", 1);
        attributes.lhsBatch = side("batching_dims", 0);
        attributes.rhsBatch = side("batching_dims", 1);
        return attributes;
    }

    /// The operand with sizes of 1 put in or taken out.
    ValueId resized(bool insert)
    {
        Shape to = shape(0);
        const char* key = m_attrs.contains("axes") ? "axes" : m_attrs.contains("axis") ? "axis" : "dimensions";
        const std::vector<std::size_t> at = dims(key, to.size() + (insert ? 1 : 0));
        for (std::size_t i = 0; i < at.size(); ++i) {
            if (insert)
                to.insert(to.begin() + static_cast<std::ptrdiff_t>(at[i]), 1);
            else
                to.erase(to.begin() + static_cast<std::ptrdiff_t>(at[i] - i));
        }
        return add(OpKind::Reshape, {m_operands[0]}, ReshapeAttributes{std::move(to)});
    }

    ValueId oneHot()
    {
        Shape to = shape(0);
        to.push_back(m_attrs.at("num_classes").get<std::int64_t>());
        std::vector<std::size_t> at(to.size() - 1);
        for (std::size_t dim = 0; dim < at.size(); ++dim)
            at[dim] = dim;
        const ValueId classes = m_builder.iota({DType::F32, to}, to.size() - 1);
        return m_builder.compare(CompareDirection::Equal, m_builder.broadcast(m_operands[0], to, at), classes);
    }

    /// A loop that multiplies the carry with a slice, and gives the product, whose sharding the case states, and a carry as it was.
    ValueId scan()
    {
        RepeatAttributes attributes;
        attributes.count = shape(1).front();
        attributes.carries = 1;
        attributes.stacked = 1;
        const TensorType carryType = function[m_operands[0]].type;
        const OpId repeat = m_builder.beginRepeat(attributes, m_operands);
        const std::vector<ValueId> arguments = function[m_builder.block()].arguments;
        also.emplace_back(arguments[1], m_attrs.at("x_slice_spec"));
        DotAttributes forward;
        forward.lhsContracting = {1};
        forward.rhsContracting = {0};
        const ValueId y = dot(arguments[0], arguments[1], forward);
        Json slice = Json::array();
        for (std::size_t dim = 1; dim < m_attrs.at("ys_spec").size(); ++dim)
            slice.push_back(m_attrs.at("ys_spec")[dim]);
        annotate(y, slice);
        DotAttributes backward;
        backward.lhsContracting = {1};
        backward.rhsContracting = {1};
        const ValueId carry = dot(y, arguments[1], backward);
        if (function[carry].type != carryType)
            throw UnsupportedCase("the loop of the case has another body than a product and its transpose");
        annotate(carry, m_json.at("operands")[0].at("spec"));
        m_builder.setResults({carry, y});
        const std::vector<ValueId> results = m_builder.endRepeat(repeat);
        also.emplace_back(results[1], m_attrs.at("ys_spec"));
        return results[0];
    }

    ValueId makeOp(const std::string& op)
    {
        if (op == "type_of")
            return m_operands[0];
        if (const auto unary = kUnary.find(op); unary != kUnary.end())
            return add(unary->second, {m_operands[0]});
        if (const auto binary = kBinary.find(op); binary != kBinary.end())
            return add(binary->second, broadcastOperands());
        if (const auto reduction = kReductions.find(op); reduction != kReductions.end())
            return add(OpKind::Reduce, {m_operands[0]},
                ReduceAttributes{reduction->second, dims(m_attrs.contains("axes") ? "axes" : "axis", shape(0).size())});
        if (op == "matmul" || op == "dot")
            return dot(m_operands[0], m_operands[1], matmulDims());
        if (op == "dot_general")
            return dot(m_operands[0], m_operands[1], dotDims());
        if (op == "expand_dims" || op == "squeeze")
            return resized(op == "expand_dims");
        if (op == "reshape")
            return add(OpKind::Reshape, {m_operands[0]}, ReshapeAttributes{m_attrs.at("new_shape").get<Shape>()});
        if (op == "transpose") {
            std::vector<std::size_t> order;
            for (const char* key : {"permutation", "axes", "dims"}) {
                if (m_attrs.contains(key))
                    order = m_attrs.at(key).get<std::vector<std::size_t>>();
            }
            for (std::size_t dim = shape(0).size(); order.size() < shape(0).size();)
                order.push_back(--dim);
            return add(OpKind::Transpose, {m_operands[0]}, TransposeAttributes{order});
        }
        if (op == "broadcast_in_dim")
            return add(OpKind::BroadcastInDim, {m_operands[0]},
                BroadcastAttributes{
                    m_attrs.at("shape").get<Shape>(), dims(m_attrs.contains("dims") ? "dims" : "broadcast_dimensions", 0)});
        if (op == "select")
            return add(OpKind::Select, m_operands);
        if (op == "slice")
            return add(OpKind::Slice, {m_operands[0]},
                SliceAttributes{m_attrs.at("start").get<Shape>(), m_attrs.at("limit").get<Shape>(),
                    m_attrs.value("strides", Shape(shape(0).size(), 1))});
        if (op == "dynamic_slice") {
            std::vector<ValueId> operands = {m_operands[0]};
            for (std::size_t dim = 0; dim < shape(0).size(); ++dim)
                operands.push_back(m_builder.splat({DType::S32, {}}, 0.0));
            return add(OpKind::DynamicSlice, operands,
                DynamicSliceAttributes{m_attrs.at(m_attrs.contains("sizes") ? "sizes" : "slice_sizes").get<Shape>()});
        }
        if (op == "dynamic_update_slice") {
            std::vector<ValueId> operands = {m_operands[0], m_operands[1]};
            for (std::size_t dim = 0; dim < shape(0).size(); ++dim)
                operands.push_back(m_builder.splat({DType::S32, {}}, 0.0));
            return add(OpKind::DynamicUpdateSlice, operands);
        }
        if (op == "pad") {
            PadAttributes attributes;
            for (const Json& dim : m_attrs.at("low_high_interior")) {
                attributes.low.push_back(dim.at(0));
                attributes.high.push_back(dim.at(1));
                attributes.interior.push_back(dim.at(2));
            }
            return add(OpKind::Pad, {m_operands[0], m_builder.splat({DType::F32, {}}, 0.0)}, attributes);
        }
        if (op == "concatenate")
            return add(OpKind::Concatenate, m_operands, ConcatenateAttributes{dims("dim", shape(0).size()).front()});
        if (op == "rev" || op == "reverse")
            return add(OpKind::Reverse, {m_operands[0]},
                ReverseAttributes{dims(m_attrs.contains("dims") ? "dims" : "dimensions", shape(0).size())});
        if (op == "one_hot")
            return oneHot();
        if (op == "scan")
            return scan();
        throw UnsupportedCase(fmt::format("the case's op {} is none that the test can build", op));
    }

    const Json& m_json;
    Json m_attrs;
    Mesh m_mesh;
    Builder m_builder;
    std::vector<ValueId> m_operands;
};

std::string typeOf(const std::optional<TensorSharding>& sharding, const Mesh& mesh)
{
    if (!sharding)
        return "none";
    TensorSharding placement = *sharding;
    placement.unreduced.clear();
    const auto spec = toSpec(placement, mesh);
    return spec ? specText(*spec) : shardyText(placement, mesh);
}

/// The collective that the compiled program is said to contain is one of ours too.
Outcome compareCollective(Function function, const Mesh& mesh, const std::string& wanted)
{
    const auto made = partition(function, {{"mesh", mesh}});
    if (!made)
        return failed(describe(made.error()));
    std::vector<std::string> found;
    for (const CollectiveUse& use : collectivesOf(*made, mesh)) {
        found.emplace_back(opName(use.kind));
        std::replace(found.back().begin(), found.back().end(), '_', '-');
    }
    return std::find(found.begin(), found.end(), wanted) != found.end() ? passed()
                                                                        : same("collectives", Json(found).dump(), wanted);
}

Outcome run(const Json& json)
{
    std::optional<ExplicitCase> made;
    try {
        made.emplace(json);
    } catch (const UnsupportedCase& reason) {
        return unsupported(reason.what());
    }
    ExplicitCase& program = *made;
    const Mesh& mesh = program.mesh();
    if (const Problems problems = verify(program.function, {{"mesh", mesh}}); !problems.empty())
        return failed(describe(problems));
    const BytesThenStepsCost cost;
    const PricingChooser chooser(cost);
    const auto findings = checkExplicitTypes(program.function, {{"mesh", mesh}}, &chooser);
    const Json& expect = json.at("expect");
    if (expect.contains("error")) {
        const auto phrase = expect.at("error").get<std::string>();
        if (findings.empty())
            return failed("no error, expected: " + phrase);
        // Some cases state the class of the exception, which all type errors have.
        return phrase == "ShardingTypeError" || findings.front().problem.message.find(phrase) != std::string::npos
            ? passed()
            : same("error", findings.front().problem.message, phrase);
    }
    if (!findings.empty())
        return failed(describe(findings.front().problem));
    const ValueId result = program.function.results().front();
    const auto& type = program.function[result];
    const std::size_t rank = type.type.shape.size();
    std::vector<Outcome> outcomes
        = {same("type", typeOf(type.sharding, mesh), typeOf(program.specOn(expect.at("out_spec"), rank), mesh))};
    for (const auto& [value, spec] : program.also)
        outcomes.push_back(same("type", typeOf(program.function[value].sharding, mesh),
            typeOf(program.specOn(spec, program.function[value].type.shape.size()), mesh)));
    if (expect.contains("out_unreduced"))
        outcomes.push_back(same("partial sums", axesText(type.sharding->unreduced, mesh),
            axesText(program.axesOf(expect.at("out_unreduced")), mesh)));
    if (expect.contains("shard_shape"))
        outcomes.push_back(
            same("shard shape", localShape(type.type.shape, *type.sharding), expect.at("shard_shape").get<Shape>()));
    if (expect.contains("collective_in_compiled"))
        outcomes.push_back(compareCollective(program.function, mesh, expect.at("collective_in_compiled").get<std::string>()));
    return all(outcomes);
}

} // namespace

class TestGoldenExplicit : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases() { settleCase(m_file, run); }
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"propagation_jax_explicit.json"};
};

MESHWRIGHT_TEST(TestGoldenExplicit)

} // namespace tst_golden_explicit

#include "tst_golden_explicit.moc"
