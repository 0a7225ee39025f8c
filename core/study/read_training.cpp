// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study_reader.h"

namespace meshwright {

void StudyReader::readOptimizer(const DocNode& node)
{
    const auto kind = choice(node, "optimizer", {"sgd", "adam", "adamw", "none"});
    if (!kind)
        return;
    const std::string path = "optimizer." + kind->kind;
    if (kind->kind == "none") {
        study.optimizer = NoOptimizer{};
        return;
    }
    SgdOptimizer sgd;
    const bool isSgd = kind->kind == "sgd";
    AdamOptimizer adam = kind->kind == "adamw" ? AdamOptimizer::adamW() : AdamOptimizer{};
    UpdateChoices& update = isSgd ? sgd.update : adam.update;
    if (kind->value != nullptr) {
        Fields fields(*this, *kind->value, path);
        if (isSgd) {
            setNumber(fields.take("learning_rate"), path + ".learning_rate", sgd.learningRate);
            setNumber(fields.take("momentum"), path + ".momentum", sgd.momentum);
        } else {
            setNumber(fields.take("learning_rate"), path + ".learning_rate", adam.learningRate);
            setNumber(fields.take("beta1"), path + ".beta1", adam.beta1);
            setNumber(fields.take("beta2"), path + ".beta2", adam.beta2);
            setNumber(fields.take("epsilon"), path + ".epsilon", adam.epsilon);
        }
        if (isSgd || adam.isAdamW)
            setNumber(fields.take("weight_decay"), path + ".weight_decay", update.weightDecay);
        setNumber(fields.take("clip_norm"), path + ".clip_norm", update.clipNorm);
        LearningRateSchedule& schedule = update.schedule;
        word(fields.take("schedule"), path + ".schedule", rateScheduleWords(), schedule.kind);
        setInteger(fields.take("warmup_steps"), path + ".warmup_steps", schedule.warmupSteps);
        setInteger(fields.take("decay_steps"), path + ".decay_steps", schedule.decaySteps);
        setNumber(fields.take("final_learning_rate"), path + ".final_learning_rate", schedule.finalRate);
        if (const DocNode* scale = fields.take("loss_scale"))
            readLossScale(*scale, path + ".loss_scale", update.lossScale);
        if (const DocNode* masters = fields.take("masters"))
            update.masters = truth(*masters, path + ".masters").value_or(false);
        fields.close();
    }
    if (isSgd)
        study.optimizer = sgd;
    else
        study.optimizer = adam;
}

void StudyReader::readLossScale(const DocNode& node, const std::string& path, LossScale& scale)
{
    if (node.kind == DocNode::Kind::Scalar && node.text == "dynamic") {
        scale = LossScale::dynamic();
        return;
    }
    if (node.kind != DocNode::Kind::Map) {
        if (const auto fixed = number(node, path))
            scale.scale = *fixed;
        return;
    }
    scale = LossScale::dynamic();
    Fields fields(*this, node, path);
    setNumber(fields.take("first"), path + ".first", scale.scale);
    setInteger(fields.take("growth_steps"), path + ".growth_steps", scale.growthSteps);
    fields.close();
}

void StudyReader::readTrain(const DocNode& node)
{
    Fields fields(*this, node, "train");
    setInteger(fields.take("steps"), "train.steps", study.train.steps);
    setInteger(fields.take("seed"), "train.seed", study.train.seed);
    if (const DocNode* data = fields.take("data"))
        readData(*data, "train.data");
    setInteger(fields.take("accumulate"), "train.accumulate", study.train.accumulate);
    if (const DocNode* norm = fields.take("grad_norm"))
        study.train.gradientNorm = truth(*norm, "train.grad_norm").value_or(study.train.gradientNorm);
    if (const DocNode* evaluate = fields.take("evaluate"))
        readEvaluation(*evaluate, "train.evaluate");
    fields.close();
}

/// How often and on what; a plain number is how often, a plain text what.
void StudyReader::readEvaluation(const DocNode& node, const std::string& path)
{
    EvaluationChoice& evaluate = study.train.evaluate;
    if (node.kind == DocNode::Kind::Scalar) {
        if (!node.quoted && parseNumber(node.text))
            setInteger(&node, path, evaluate.every);
        else
            evaluate.file = node.text;
        return;
    }
    Fields fields(*this, node, path);
    setInteger(fields.take("every"), path + ".every", evaluate.every);
    setText(fields.take("file"), path + ".file", evaluate.file);
    setText(fields.take("labels"), path + ".labels", evaluate.labels);
    fields.close();
}

void StudyReader::readData(const DocNode& node, const std::string& path)
{
    TrainingData& data = study.train.data;
    if (node.kind == DocNode::Kind::Map) {
        Fields fields(*this, node, path);
        data.kind = TrainingData::Kind::File;
        setText(fields.require("file", "name a CSV, IDX or NPY file"), path + ".file", data.file);
        setText(fields.take("labels"), path + ".labels", data.labels);
        setNumber(fields.take("scale"), path + ".scale", data.scale);
        setInteger(fields.take("held_out"), path + ".held_out", data.heldOut);
        if (const DocNode* shuffle = fields.take("shuffle"))
            data.shuffle = truth(*shuffle, path + ".shuffle").value_or(data.shuffle);
        fields.close();
        return;
    }
    const auto name = text(node, path, "random, digits, or a file");
    if (!name || *name == "random")
        return;
    if (*name == "digits") {
        data.kind = TrainingData::Kind::Digits;
    } else if (name->find_first_of("./") != std::string::npos) {
        data.kind = TrainingData::Kind::File;
        data.file = *name;
    } else {
        unknownName(node, path, {"random", "digits"}).fix += "; a file's name has a dot or a slash";
    }
}

void StudyReader::readPhases(const DocNode& node)
{
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, "phases", "a list of phases", "write phases: [{steps: 30, mesh: {data: 8}}]");
        return;
    }
    if (tooMany(node, "phases", kMostRules, "phases"))
        return;
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string path = fmt::format("phases[{}]", i);
        study.places.at[path] = node.entries[i].value.place(path);
        Fields fields(*this, node.entries[i].value, path);
        StudyPhase phase;
        setInteger(fields.require("steps", "say how long it lasts: steps: 30"), path + ".steps", phase.steps);
        if (const DocNode* mesh = fields.require("mesh", "give its mesh: mesh: {data: 8}"))
            readMesh(*mesh, path + ".mesh", phase.mesh, phase.deviceOrder);
        readOrder(fields.take("device_order"), path + ".device_order", phase.deviceOrder);
        fields.close();
        study.phases.push_back(std::move(phase));
    }
}

/// Their number. An axis of the mesh was meant where a name stands: what is then wrong is said once, and the rest is checked with that axis.
void StudyReader::readStages(const DocNode* node)
{
    const char* path = "pipeline.stages";
    const bool isName = node != nullptr && node->kind == DocNode::Kind::Scalar && !node->text.empty()
        && std::isalpha(static_cast<unsigned char>(node->text.front())) != 0;
    const auto axis = isName ? std::ranges::find(study.mesh, node->text, &MeshAxis::name) : study.mesh.end();
    if (!isName) {
        setInteger(node, path, study.pipeline.stages);
    } else if (axis == study.mesh.end()) {
        wrongKind(*node, path, "an integer",
            "give the number of stages, such as stages: 4, and name the mesh axis that they lie on beside it, such as axis: "
            "pipe");
    } else {
        wrongKind(*node, path, "an integer",
            fmt::format(
                "write axis: {}: it is an axis of the mesh, and its size, {}, is the number of stages", axis->name, axis->size));
        problems.back().fixSettings = {"pipeline.stages=", "pipeline.axis=" + axis->name};
        study.pipeline.axis = axis->name;
        study.pipeline.stages = axis->size;
    }
}

void StudyReader::readPipeline(const DocNode& node)
{
    Fields fields(*this, node, "pipeline");
    setText(fields.take("axis"), "pipeline.axis", study.pipeline.axis);
    const auto axis = std::ranges::find(study.mesh, study.pipeline.axis, &MeshAxis::name);
    if (axis != study.mesh.end())
        study.pipeline.stages = axis->size;
    readStages(fields.take("stages"));
    setInteger(fields.take("microbatches"), "pipeline.microbatches", study.pipeline.microbatches);
    word(fields.take("schedule"), "pipeline.schedule", scheduleWords(), study.pipeline.schedule);
    setInteger(fields.take("chunks"), "pipeline.chunks", study.pipeline.chunks);
    const DocNode* layers = fields.take("layers");
    if (layers != nullptr && !tooMany(*layers, "pipeline.layers", kMostLayers, "numbers of layers"))
        study.pipeline.layers
            = integers(*layers, "pipeline.layers", "a list of numbers of layers").value_or(study.pipeline.layers);
    fields.close();
}

} // namespace meshwright
