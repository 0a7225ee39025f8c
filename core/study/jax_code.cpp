// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/jax_code.h"

#include "core/models/array_name.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace meshwright {

namespace {

std::string tupleText(const std::vector<std::string>& parts)
{
    return fmt::format("({}{})", join(parts, ", "), parts.size() == 1 ? "," : "");
}

std::string meshText(const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order)
{
    std::vector<std::string> sizes;
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh) {
        sizes.push_back(std::to_string(axis.size));
        names.push_back(fmt::format("'{}'", axis.name));
    }
    if (mesh.empty()) {
        sizes.emplace_back("1");
        names.emplace_back("'device'");
    }
    const std::string types = fmt::format("axis_types=(jax.sharding.AxisType.Auto,) * {}", names.size());
    if (order.empty())
        return fmt::format("mesh = jax.make_mesh({}, {}, {})\n", tupleText(sizes), tupleText(names), types);
    return fmt::format("mesh = jax.sharding.Mesh(np.array(jax.devices())[[{}]].reshape({}), {}, {})\n", fmt::join(order, ", "),
        join(sizes, ", "), tupleText(names), types);
}

const char* numberType(DType type)
{
    switch (type) {
    case DType::F64:
        return "jnp.float64";
    case DType::F16:
        return "jnp.float16";
    case DType::BF16:
        return "jnp.bfloat16";
    default:
        return "jnp.float32";
    }
}

/// The parts of an MLP's program in Python that JAX's and Flax's share.
class TrainingCode {
public:
    TrainingCode(const Study& study, const SpecTexts& specs)
        : m_study(phaseStudy(study, 0))
        , m_phases(study.phases.size())
        , m_mlp(*m_study.mlp())
        , m_specs(specs.begin(), specs.end())
    {
    }

    std::string jax() const;
    std::string flax() const;

private:
    std::size_t layerCount() const { return m_mlp.layers.size() - 1; }
    bool isPlain() const { return m_study.parameterType == DType::F32 && m_study.matmulType == DType::F32; }
    /// In which products add up and the loss is taken.
    DType wide() const { return byteSize(m_study.parameterType) < byteSize(DType::F32) ? DType::F32 : m_study.parameterType; }
    std::string spec(const std::string& name) const
    {
        const auto found = m_specs.find(name);
        return found == m_specs.end() ? "P()" : found->second;
    }
    std::vector<std::string> leftOut() const;
    std::string head(bool withFlax) const;
    std::string parameterSpecs(const char* name, ArrayName::Family family) const;
    std::string constraints() const;
    std::string drawn(Initializer initializer, const char* key, const std::string& shape) const;
    std::string init() const;
    std::string layers(const char* over, const std::string& product, const char* indent) const;
    std::string lossText(const char* predictions) const;
    std::string rate() const;
    std::string optimizer() const;
    std::string data() const;
    std::string gradients(const char* function, const char* arguments) const;
    bool haveOwnMoments() const;

    Study m_study; ///< of the first phase
    std::size_t m_phases;
    const MlpModel& m_mlp;
    std::map<std::string, std::string> m_specs;
};

std::vector<std::string> TrainingCode::leftOut() const
{
    std::vector<std::string> parts;
    if (m_phases > 1)
        parts.emplace_back("all phases but the first");
    if (m_study.pipeline.stages > 1)
        parts.push_back(fmt::format("the pipeline of {} stages", m_study.pipeline.stages));
    if (m_study.dropout > 0.0)
        parts.emplace_back("dropout");
    if (const UpdateChoices* update = updateChoices(m_study.optimizer)) {
        if (!update->lossScale.isPlain())
            parts.emplace_back("the loss scale");
        if (update->masters)
            parts.emplace_back("f32 masters of the parameters");
    }
    if (m_study.gradientType)
        parts.emplace_back("the type of gradients");
    const auto isGradient = [](const auto& entry) { return arrayNameOf(entry.first).family == ArrayName::Family::Gradient; };
    if (std::any_of(m_specs.begin(), m_specs.end(), isGradient))
        parts.emplace_back("specs of gradients");
    if (m_study.train.data.kind != TrainingData::Kind::Random)
        parts.emplace_back("its data: random rows stand in their place");
    return parts;
}

std::string TrainingCode::head(bool withFlax) const
{
    std::string text = fmt::format("# {}\n", m_study.name.empty() ? "A study of Meshwright" : m_study.name);
    if (const std::vector<std::string> parts = leftOut(); !parts.empty())
        text += fmt::format("# Of the study this leaves out {}.\n", join(parts, "; "));
    text += "import jax\nimport jax.numpy as jnp\n";
    if (!m_study.deviceOrder.empty())
        text += "import numpy as np\n";
    text += "import optax\n";
    if (withFlax)
        text += "from flax import nnx\n";
    text += "from jax.sharding import NamedSharding, PartitionSpec as P\n\n";
    if (!m_study.partitionableRandom)
        text += "jax.config.update('jax_threefry_partitionable', False)\n";
    if (m_study.parameterType == DType::F64)
        text += "jax.config.update('jax_enable_x64', True)\n";
    return text + meshText(m_study.mesh, m_study.deviceOrder) + fmt::format("sizes = [{}]\n", fmt::join(m_mlp.layers, ", "));
}

std::string TrainingCode::parameterSpecs(const char* name, ArrayName::Family family) const
{
    std::string text = fmt::format("{} = [\n", name);
    for (std::size_t i = 0; i < layerCount(); ++i) {
        text += fmt::format("    {{'w': {}", spec(ArrayName{family, fmt::format("layers.{}.w", i)}.text()));
        if (m_mlp.bias)
            text += fmt::format(", 'b': {}", spec(ArrayName{family, fmt::format("layers.{}.b", i)}.text()));
        text += "},\n";
    }
    return text + "]\n";
}

/// What the study constrains inside: two dictionaries by the number of the layer, where there is any.
std::string TrainingCode::constraints() const
{
    std::string text;
    for (const auto& [name, ending] : {std::pair{"outputs", ""}, std::pair{"activated", ".activated"}}) {
        std::vector<std::string> entries;
        for (std::size_t i = 0; i < layerCount(); ++i) {
            if (const auto found = m_specs.find(fmt::format("act.layers.{}{}", i, ending)); found != m_specs.end())
                entries.push_back(fmt::format("{}: {}", i, found->second));
        }
        if (!entries.empty())
            text += fmt::format("{} = {{{}}}\n", name, join(entries, ", "));
    }
    return text;
}

std::string TrainingCode::drawn(Initializer initializer, const char* key, const std::string& shape) const
{
    const std::string type
        = m_study.parameterType == DType::F32 ? "" : fmt::format(".astype({})", numberType(m_study.parameterType));
    const auto truncated = [&](int variance) { // the deviation of a standard normal between -2 and 2 is 0.8796
        return fmt::format("(jax.random.truncated_normal({}, -2, 2, {}) * (({} / fan_in) ** 0.5 / 0.87962566103423978)){}", key,
            shape, variance, type);
    };
    switch (initializer) {
    case Initializer::NormalOverSqrtFanIn:
        return fmt::format("(jax.random.normal({}, {}) / fan_in ** 0.5){}", key, shape, type);
    case Initializer::LecunNormal:
        return truncated(1);
    case Initializer::HeNormal:
        return truncated(2);
    case Initializer::Normal:
        return fmt::format("jax.random.normal({}, {}){}", key, shape, type);
    case Initializer::Zeros:
    case Initializer::Ones:
        break;
    }
    return fmt::format(
        "jnp.{}({}, {})", initializer == Initializer::Zeros ? "zeros" : "ones", shape, numberType(m_study.parameterType));
}

std::string TrainingCode::init() const
{
    std::string text = "\ndef init(key):\n    layers = []\n"
                       "    for key, fan_in, fan_out in zip(jax.random.split(key, len(sizes))[1:], sizes, sizes[1:]):\n"
                       "        w_key, b_key = jax.random.split(key)\n";
    text += fmt::format("        layers.append({{'w': {}", drawn(m_study.weightInit, "w_key", "(fan_in, fan_out)"));
    if (m_mlp.bias)
        text += fmt::format(",\n                       'b': {}", drawn(m_study.biasInit, "b_key", "(fan_out,)"));
    return text + "})\n    return layers\n\n";
}

/// The body of the loop over layers. `product` of `x` and the layer.
std::string TrainingCode::layers(const char* over, const std::string& product, const char* indent) const
{
    const std::string made = constraints();
    std::string text = fmt::format("{0}for number, layer in enumerate({1}):\n{0}    x = {2}\n", indent, over, product);
    const auto constrain = [&](const char* name, const char* deeper) {
        return fmt::format(
            "{0}{1}    if number in {2}:\n{0}{1}        x = jax.lax.with_sharding_constraint(x, on({2}[number]))\n", indent,
            deeper, name);
    };
    if (made.find("outputs = ") != std::string::npos)
        text += constrain("outputs", "");
    text += fmt::format("{0}    if number < {1}:\n{0}        x = {2}(x)\n", indent, layerCount() - 1,
        m_mlp.activation == Activation::Tanh ? "jnp.tanh" : "jax.nn.relu");
    if (made.find("activated = ") != std::string::npos)
        text += constrain("activated", "    ");
    return text + fmt::format("{}return x\n", indent);
}

std::string TrainingCode::lossText(const char* predictions) const
{
    const bool widens = wide() != m_study.parameterType;
    std::string text = fmt::format("    predictions = {}\n", predictions);
    if (widens)
        text += fmt::format("    predictions, y = predictions.astype({0}), y.astype({0})\n", numberType(wide()));
    switch (m_mlp.loss) {
    case LossKind::CrossEntropy:
        return text + "    return optax.softmax_cross_entropy(predictions, y).mean()\n";
    case LossKind::MeanSquared:
        return text + "    return jnp.mean((predictions - y) ** 2)\n";
    case LossKind::SumSquared:
        break;
    }
    return text + "    return jnp.mean(jnp.sum((predictions - y) ** 2, axis=-1))\n";
}

std::string TrainingCode::rate() const
{
    const auto* sgd = std::get_if<SgdOptimizer>(&m_study.optimizer);
    const double peak = sgd != nullptr ? sgd->learningRate : std::get<AdamOptimizer>(m_study.optimizer).learningRate;
    const LearningRateSchedule& schedule = updateChoices(m_study.optimizer)->schedule;
    const std::string up = fmt::format("optax.linear_schedule(0.0, {}, {})", peak, schedule.warmupSteps);
    const std::int64_t downSteps = schedule.decaySteps - schedule.warmupSteps;
    std::string down;
    switch (schedule.kind) {
    case LearningRateSchedule::Kind::Constant:
        return schedule.warmupSteps == 0 ? fmt::format("{}", peak) : up;
    case LearningRateSchedule::Kind::Linear:
        down = fmt::format("optax.linear_schedule({}, {}, {})", peak, schedule.finalRate, downSteps);
        break;
    case LearningRateSchedule::Kind::Cosine:
        down = fmt::format(
            "optax.cosine_decay_schedule({}, {}, alpha={})", peak, downSteps, peak > 0.0 ? schedule.finalRate / peak : 0.0);
        break;
    }
    return schedule.warmupSteps == 0 ? down : fmt::format("optax.join_schedules([{}, {}], [{}])", up, down, schedule.warmupSteps);
}

std::string TrainingCode::optimizer() const
{
    const UpdateChoices& update = *updateChoices(m_study.optimizer);
    std::vector<std::string> parts;
    if (update.clipNorm > 0.0)
        parts.push_back(fmt::format("optax.clip_by_global_norm({})", update.clipNorm));
    if (const auto* sgd = std::get_if<SgdOptimizer>(&m_study.optimizer)) {
        if (update.weightDecay == 0.0) {
            parts.push_back(
                fmt::format("optax.sgd({}{})", rate(), sgd->momentum == 0.0 ? "" : fmt::format(", momentum={}", sgd->momentum)));
        } else { // behind the momentum, as decoupled decay is
            if (sgd->momentum != 0.0)
                parts.push_back(fmt::format("optax.trace({})", sgd->momentum));
            parts.push_back(fmt::format("optax.add_decayed_weights({})", update.weightDecay));
            parts.push_back(fmt::format("optax.scale_by_learning_rate({})", rate()));
        }
    } else {
        const auto& adam = std::get<AdamOptimizer>(m_study.optimizer);
        parts.push_back(
            fmt::format("optax.{}({}, b1={}, b2={}, eps={}{})", update.weightDecay == 0.0 ? "adam" : "adamw", rate(), adam.beta1,
                adam.beta2, adam.epsilon, update.weightDecay == 0.0 ? "" : fmt::format(", weight_decay={}", update.weightDecay)));
    }
    return fmt::format("optimizer = {}\n", parts.size() == 1 ? parts.front() : fmt::format("optax.chain({})", join(parts, ", ")));
}

std::string TrainingCode::data() const
{
    const std::string type
        = m_study.parameterType == DType::F32 ? "" : fmt::format(".astype({})", numberType(m_study.parameterType));
    std::string text
        = fmt::format("_, x_key, y_key = jax.random.split(jax.random.split(jax.random.key({}), len(sizes))[0], 3)\n"
                      "x = jax.random.normal(x_key, ({}, sizes[0])){}\ny = jax.random.normal(y_key, ({}, sizes[-1])){}\n",
            m_study.train.seed, m_study.batch, type, m_study.batch, type);
    if (m_mlp.loss == LossKind::CrossEntropy)
        text += fmt::format(
            "y = jax.nn.one_hot(jnp.argmax(y, axis=-1), sizes[-1], dtype={})\n", numberType(m_study.parameterType));
    return text + fmt::format("x, y = jax.device_put((x, y), (on({}), on({})))\n", spec("x"), spec("y"));
}

/// `value` and `gradients` of a batch; of several microbatches their mean. Microbatch i of m has the rows i, i + m, i + 2 m, ..
std::string TrainingCode::gradients(const char* function, const char* arguments) const
{
    const std::int64_t parts = m_study.train.accumulate;
    if (parts == 1)
        return fmt::format("    value, gradients = {}({}, x, y)\n", function, arguments);
    return fmt::format(
        "    rows = lambda a: jnp.swapaxes(a.reshape(-1, {0}, a.shape[-1]), 0, 1)\n"
        "    add = lambda total, part: (jax.tree.map(jnp.add, total, {1}({2}, *part)), None)\n"
        "    zeros = jax.tree.map(jnp.zeros_like, jax.eval_shape({1}, {2}, x, y))\n"
        "    value, gradients = jax.tree.map(lambda total: total / {0}, jax.lax.scan(add, zeros, (rows(x), rows(y)))[0])\n",
        parts, function, arguments);
}

bool TrainingCode::haveOwnMoments() const
{
    return std::any_of(m_specs.begin(), m_specs.end(), [&](const auto& entry) {
        const ArrayName name = arrayNameOf(entry.first);
        return name.family == ArrayName::Family::Momentum && entry.second != spec(name.base);
    });
}

std::string TrainingCode::jax() const
{
    const std::string product = [&]() -> std::string {
        const std::string bias = m_mlp.bias ? " + layer['b']" : "";
        if (isPlain())
            return "x @ layer['w']" + bias;
        const std::string narrow = numberType(m_study.matmulType);
        return fmt::format("jnp.dot(x.astype({0}), layer['w'].astype({0}), preferred_element_type={1}).astype({2}){3}", narrow,
            numberType(wide()), numberType(m_study.parameterType), bias);
    }();
    std::string text = head(false) + parameterSpecs("specs", ArrayName::Family::Own) + constraints()
        + "\non = lambda spec: NamedSharding(mesh, spec)\nshardings = jax.tree.map(on, specs)\n" + init()
        + "\ndef forward(params, x):\n" + layers("params", product, "    ") + "\n\ndef loss(params, x, y):\n"
        + lossText("forward(params, x)") + "\n\n"
        + fmt::format("params = jax.jit(init, out_shardings=shardings)(jax.random.key({}))\n", m_study.train.seed);
    const bool updates = updateChoices(m_study.optimizer) != nullptr;
    if (updates) {
        text += optimizer() + "state = optimizer.init(params)\n";
        if (haveOwnMoments())
            text += parameterSpecs("moment_specs", ArrayName::Family::Momentum)
                + "state = optax.tree_map_params(\n"
                  "    optimizer, lambda moment, spec: jax.device_put(moment, on(spec)), state, moment_specs)\n";
        text += "placed = jax.tree.map(lambda leaf: leaf.sharding, state)\n\n\ndef step(params, state, x, y):\n"
            + gradients("jax.value_and_grad(loss)", "params")
            + "    updates, state = optimizer.update(gradients, state, params)\n"
              "    return optax.apply_updates(params, updates), state, value\n\n\n"
              "step = jax.jit(step, donate_argnums=(0, 1), out_shardings=(shardings, placed, None))\n";
    } else {
        text += "\n\ndef step(params, x, y):\n" + gradients("jax.value_and_grad(loss)", "params")
            + "    return value, gradients\n\n\nstep = jax.jit(step)\n";
    }
    text += "\n" + data() + fmt::format("for number in range({}):\n", m_study.train.steps);
    text += updates ? "    params, state, value = step(params, state, x, y)\n" : "    value, gradients = step(params, x, y)\n";
    return text + "    print(number, value)\nprint('after', jax.jit(loss)(params, x, y))\n";
}

std::string TrainingCode::flax() const
{
    const auto initializer = [](Initializer one) -> const char* {
        switch (one) {
        case Initializer::NormalOverSqrtFanIn:
            return "nnx.initializers.variance_scaling(1.0, 'fan_in', 'normal')";
        case Initializer::LecunNormal:
            return "nnx.initializers.lecun_normal()";
        case Initializer::HeNormal:
            return "nnx.initializers.he_normal()";
        case Initializer::Normal:
            return "nnx.initializers.normal(1.0)";
        case Initializer::Zeros:
            return "nnx.initializers.zeros_init()";
        case Initializer::Ones:
            break;
        }
        return "nnx.initializers.ones_init()";
    };
    std::string types = isPlain()
        ? ""
        : fmt::format(", dtype={}, param_dtype={}", numberType(m_study.matmulType), numberType(m_study.parameterType));
    std::string text = head(true) + parameterSpecs("specs", ArrayName::Family::Own) + constraints()
        + "\non = lambda spec: NamedSharding(mesh, spec)\n\n\n"
        + "class Mlp(nnx.Module):\n    def __init__(self, rngs):\n        self.layers = nnx.List([\n"
        + fmt::format("            nnx.Linear(fan_in, fan_out, use_bias={}{}, rngs=rngs,\n"
                      "                       kernel_init=nnx.with_partitioning({}, tuple(spec['w']))",
            m_mlp.bias ? "True" : "False", types, initializer(m_study.weightInit));
    if (m_mlp.bias)
        // A bias has no fan-in of its own; those that would scale by it begin as Flax begins biases.
        text += fmt::format(",\n                       bias_init=nnx.with_partitioning({}, tuple(spec['b']))",
            initializer(m_study.biasInit == Initializer::Normal || m_study.biasInit == Initializer::Ones ? m_study.biasInit
                                                                                                         : Initializer::Zeros));
    text += ")\n            for fan_in, fan_out, spec in zip(sizes, sizes[1:], specs)])\n\n    def __call__(self, x):\n"
        + layers("self.layers", "layer(x)", "        ") + "\n\n@nnx.jit\ndef create():\n"
        + fmt::format("    model = Mlp(nnx.Rngs({}))\n", m_study.train.seed)
        + "    state = nnx.state(model)\n"
          "    nnx.update(model, jax.lax.with_sharding_constraint(state, nnx.get_named_sharding(state, mesh)))\n    return "
          "model\n\n\n"
          "def loss(model, x, y):\n"
        + lossText("model(x)") + "\n\nwith mesh:\n    model = create()\n";
    const bool updates = updateChoices(m_study.optimizer) != nullptr;
    if (updates)
        text += optimizer() + "optimizer = nnx.Optimizer(model, optimizer, wrt=nnx.Param)\n";
    text += fmt::format("\n\n@nnx.jit\ndef step(model, {}x, y):\n", updates ? "optimizer, " : "")
        + gradients("nnx.value_and_grad(loss)", "model")
        + (updates ? "    optimizer.update(model, gradients)\n    return value\n" : "    return value, gradients\n");
    text += "\n\n" + data() + fmt::format("for number in range({}):\n", m_study.train.steps);
    return text + (updates ? "    print(number, step(model, optimizer, x, y))\n" : "    print(number, step(model, x, y)[0])\n")
        + "print('after', loss(model, x, y))\n";
}

} // namespace

std::string jaxSpecs(const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order, const SpecTexts& specs)
{
    std::string text = fmt::format("import jax\n{}from jax.sharding import PartitionSpec as P\n\n{}specs = {{\n",
        order.empty() ? "" : "import numpy as np\n", meshText(mesh, order));
    for (const auto& [array, spec] : specs)
        text += fmt::format("    '{}': {},\n", array, spec);
    return text + "}\n";
}

std::string jaxTraining(const Study& study, const SpecTexts& specs)
{
    return TrainingCode(study, specs).jax();
}

std::string flaxTraining(const Study& study, const SpecTexts& specs)
{
    return TrainingCode(study, specs).flax();
}

} // namespace meshwright
