// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/model_section.h"

#include "core/study/study_parts.h"
#include "core/study/transformer_keys.h"
#include "core/support/counted.h"
#include "core/support/quantity.h"
#include "core/support/text.h"
#include "ui/study/field.h"
#include "ui/study/value_edit.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>

namespace meshwright::ui {

namespace {

QString listText(const std::vector<std::int64_t>& sizes)
{
    QStringList parts;
    for (const std::int64_t size : sizes)
        parts << QString::number(size);
    return parts.join(QLatin1String(", "));
}

QString layersProblem(const QString& text)
{
    const auto sizes = sizesIn(text);
    if (!sizes)
        return ModelSection::tr("Sizes are whole numbers: 784, 8192, 10");
    if (sizes->size() < 2)
        return ModelSection::tr("At least the inputs and the outputs: 784, 10");
    const bool good = std::all_of(sizes->begin(), sizes->end(), [](std::int64_t s) { return s >= 1 && s <= kLargestDimension; });
    return good ? QString() : ModelSection::tr("Every size is at least 1 and at most 2^40");
}

QString countProblem(const QString& text)
{
    const auto count = parseCount(trimmed(text.toStdString()));
    return count && *count >= 1 && *count <= kLargestDimension ? QString()
                                                               : ModelSection::tr("A whole number, at least 1: 256, 4k");
}

QString rateProblem(const QString& text)
{
    const auto rate = parseNumber(trimmed(text.toStdString()));
    return rate && *rate > 0 ? QString() : ModelSection::tr("A number above 0, such as 0.01 or 1e-3");
}

QString momentumProblem(const QString& text)
{
    const auto momentum = parseNumber(trimmed(text.toStdString()));
    return momentum && *momentum >= 0 && *momentum < 1 ? QString() : ModelSection::tr("A number from 0 to below 1");
}

template <typename T>
QStringList namesOf(const Words<T>& words)
{
    QStringList names;
    for (const auto& [name, value] : words)
        names << QString::fromLatin1(name);
    return names;
}

QString numberText(double value)
{
    return QString::fromStdString(fmt::format("{}", value));
}

QComboBox* wordBox(const QStringList& words, const QString& name)
{
    auto* box = new QComboBox;
    box->addItems(words);
    box->setAccessibleName(name);
    keepWheelForFocus(box);
    return box;
}

/// Two editors on one line, with words between them (may be null); `secondStretch` is the share of the second in the width.
QWidget* sideBySide(QWidget* first, QLabel* between, QWidget* second, int secondStretch)
{
    auto* line = new QWidget;
    auto* row = new QHBoxLayout(line);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    for (QWidget* editor : {first, second}) {
        if (editor->sizePolicy().horizontalPolicy() != QSizePolicy::Minimum)
            editor->setSizePolicy(QSizePolicy::Ignored, editor->sizePolicy().verticalPolicy());
    }
    row->addWidget(first, 1);
    if (between != nullptr) {
        between->setBuddy(second);
        row->addWidget(between);
    }
    row->addWidget(second, secondStretch);
    line->setFocusProxy(first);
    return line;
}

void choose(QComboBox& box, const char* word)
{
    const QSignalBlocker quiet(&box);
    box.setCurrentIndex(box.findText(QString::fromLatin1(word)));
}

} // namespace

ModelSection::ModelSection(QWidget* parent)
    : Section(tr("Model"), parent)
    , m_program(new ToneLabel(ColourRole::MutedText))
    , m_layers(new ValueEdit)
    , m_activation(wordBox(namesOf(activationWords()), tr("Activation")))
    , m_bias(new QCheckBox(tr("bias")))
    , m_loss(wordBox(namesOf(lossWords()), tr("Loss")))
    , m_batch(new ValueEdit)
    , m_sequence(new ValueEdit)
    , m_recompute(wordBox(namesOf(recomputeWords()), tr("Recompute")))
    , m_parameters(wordBox(namesOf(dtypeWords()), tr("Type of parameters")))
    , m_products(wordBox(namesOf(dtypeWords()), tr("Type of products")))
    , m_optimizer(wordBox(
          {QStringLiteral("sgd"), QStringLiteral("adam"), QStringLiteral("adamw"), QStringLiteral("none")}, tr("Optimizer")))
    , m_rate(new ValueEdit)
    , m_momentum(new ValueEdit)
    , m_momentumLabel(new QLabel(tr("momentum")))
{
    m_program->hide();
    body().addWidget(m_program);
    m_layers->setCheck(layersProblem);
    m_batch->setCheck(countProblem);
    m_sequence->setCheck(countProblem);
    m_recompute->setToolTip(tr("Values that the backward run computes again instead of keeping them"));
    m_recompute->setSizeAdjustPolicy(
        QComboBox::AdjustToMinimumContentsLengthWithIcon); // its words are longer than the panel is wide
    m_recompute->setMinimumContentsLength(8);
    m_recompute->setPlaceholderText(tr("named values"));
    m_rate->setCheck(rateProblem);
    m_momentum->setCheck(momentumProblem);
    m_bias->setAccessibleName(tr("Bias of each layer"));
    m_products->setToolTip(tr("Operands of products are rounded to this type"));

    addText("model.mlp.layers", m_layers, addLine(tr("Layers"), m_layers));
    Field* activation = addLine(tr("Activation"), sideBySide(m_activation, nullptr, m_bias, 0));
    addEditor("model.mlp.activation", m_activation, activation);
    addEditor("model.mlp.bias", m_bias, activation);
    addEditor("model.mlp.loss", m_loss, addLine(tr("Loss"), m_loss));
    m_batchLine = addLine(tr("Batch"), m_batch);
    addText("batch", m_batch, m_batchLine);
    addText("sequence", m_sequence, addLine(tr("Sequence"), m_sequence));
    addEditor("recompute", m_recompute, addLine(tr("Recompute"), m_recompute));
    m_typesLine = addLine(tr("Parameters"), sideBySide(m_parameters, new QLabel(tr("products")), m_products, 1));
    addEditor("dtype.parameters", m_parameters, m_typesLine);
    addEditor("dtype.matmul", m_products, m_typesLine);
    addEditor("optimizer", m_optimizer, addLine(tr("Optimizer"), m_optimizer));
    m_rateLine = addLine(tr("Learning rate"), sideBySide(m_rate, m_momentumLabel, m_momentum, 1));
    m_rate->setAccessibleName(tr("Learning rate"));
    m_momentum->setAccessibleName(tr("Momentum"));
    addText("optimizer.sgd.learning_rate", m_rate, m_rateLine);
    addText("optimizer.sgd.momentum", m_momentum, m_rateLine);

    connect(m_layers, &ValueEdit::committed, this, [this](const QString& text) {
        Q_EMIT edited(
            {setting(QStringLiteral("model.mlp.layers"), QLatin1Char('[') + listText(*sizesIn(text)) + QLatin1Char(']'))});
    });
    for (const auto& [edit, path] : {std::pair(m_batch, "batch"), std::pair(m_sequence, "sequence")}) {
        connect(edit, &ValueEdit::committed, this, [this, path = QString::fromLatin1(path)](const QString& text) {
            Q_EMIT edited({setting(path, QString::number(*parseCount(trimmed(text.toStdString()))))});
        });
    }
    connect(m_bias, &QCheckBox::clicked, this, [this](bool on) {
        Q_EMIT edited({setting(QStringLiteral("model.mlp.bias"), on ? QStringLiteral("true") : QStringLiteral("false"))});
    });
    for (const auto& [box, path] : {std::pair(m_activation, "model.mlp.activation"), std::pair(m_loss, "model.mlp.loss"),
             std::pair(m_recompute, "recompute")}) {
        connect(box, &QComboBox::textActivated, this,
            [this, path = QString::fromLatin1(path)](const QString& word) { Q_EMIT edited({setting(path, word)}); });
    }
    for (QComboBox* box : {m_parameters, m_products}) {
        connect(box, &QComboBox::textActivated, this, [this] {
            Study changed = m_facts->study;
            changed.parameterType = *parseDType(m_parameters->currentText().toStdString());
            changed.matmulType = *parseDType(m_products->currentText().toStdString());
            Q_EMIT edited({setting(QStringLiteral("dtype"), QString::fromStdString(dtypeValue(changed)))});
        });
    }
    connect(m_optimizer, &QComboBox::textActivated, this, &ModelSection::chooseOptimizer);
    connect(m_rate, &ValueEdit::committed, this, [this](const QString& text) {
        Optimizer optimizer = m_facts->study.optimizer;
        const double rate = *parseNumber(trimmed(text.toStdString()));
        if (auto* sgd = std::get_if<SgdOptimizer>(&optimizer))
            sgd->learningRate = rate;
        else if (auto* adam = std::get_if<AdamOptimizer>(&optimizer))
            adam->learningRate = rate;
        setOptimizer(optimizer);
    });
    connect(m_momentum, &ValueEdit::committed, this, [this](const QString& text) {
        Optimizer optimizer = m_facts->study.optimizer;
        if (auto* sgd = std::get_if<SgdOptimizer>(&optimizer))
            sgd->momentum = *parseNumber(trimmed(text.toStdString()));
        setOptimizer(optimizer);
    });
}

Field* ModelSection::addLine(const QString& label, QWidget* editor)
{
    auto* field = new Field(label, editor);
    body().addWidget(field);
    m_lines.push_back(field);
    return field;
}

void ModelSection::addEditor(const char* path, QWidget* widget, Field* field)
{
    m_editors.push_back({QString::fromLatin1(path), widget, field});
}

void ModelSection::addText(const char* path, ValueEdit* editor, Field* field)
{
    addEditor(path, editor, field);
    connect(editor, &ValueEdit::problemChanged, field, &Field::setTyped);
}

void ModelSection::show(const std::shared_ptr<const StudyFacts>& facts)
{
    m_facts = facts;
    const auto* program = std::get_if<ProgramFile>(&facts->study.model);
    for (Field* line : m_lines)
        line->setVisible(program == nullptr);
    const TransformerModel* transformer = facts->study.transformer();
    const bool isUnread
        = (facts->modelKind == "transformer" && transformer == nullptr) || (facts->modelKind == "program" && program == nullptr);
    for (const Editor& editor : m_editors) {
        const bool isOfMlp = editor.path.startsWith(QLatin1String("model.mlp."));
        const bool isOfTransformer = editor.path == QLatin1String("sequence") || editor.path == QLatin1String("recompute");
        if (transformer != nullptr || isUnread ? isOfMlp : isOfTransformer)
            editor.field->setVisible(false);
    }
    QString text;
    if (transformer != nullptr)
        text = tr("A transformer: %1, hidden %2, %3")
                   .arg(QString::fromStdString(counted(transformer->config.layers, "layer")))
                   .arg(transformer->config.hidden)
                   .arg(QString::fromStdString(counted(transformer->config.heads, "head")));
    if (program != nullptr) {
        text = tr("The program %1").arg(QString::fromStdString(program->file));
        if (!program->function.empty())
            text += tr(", function %1").arg(QString::fromStdString(program->function));
    }
    if (isUnread) {
        const auto error = std::ranges::find(facts->problems, Severity::Error, &Problem::severity);
        text = tr("The %1 cannot be read").arg(QString::fromStdString(facts->modelKind));
        if (error != facts->problems.end())
            text += QStringLiteral(": ") + QString::fromStdString(error->message);
    }
    m_program->setNote(text, isUnread ? ColourRole::Error : ColourRole::Text);
    if (program == nullptr)
        showMlp();
    setEnabled(facts->readable);
}

void ModelSection::showMlp()
{
    if (const MlpModel* mlp = m_facts->study.mlp()) {
        m_layers->setValue(listText(mlp->layers));
        choose(*m_activation, activationName(mlp->activation));
        choose(*m_loss, lossName(mlp->loss));
        m_bias->setChecked(mlp->bias);
    }
    m_batch->setValue(QString::number(m_facts->study.batch));
    const TransformerModel* transformer = m_facts->study.transformer();
    if (transformer != nullptr) {
        m_sequence->setValue(QString::number(transformer->sequence));
        choose(*m_recompute, recomputeText(*transformer).c_str());
    }
    m_batchLine->setRemark(transformer == nullptr
            ? QString()
            : tr("%1 tokens a step")
                  .arg(QLocale(QLocale::English)
                           .toString(
                               static_cast<double>(m_facts->study.batch) * static_cast<double>(transformer->sequence), 'f', 0)));
    choose(*m_parameters, dtypeName(m_facts->study.parameterType));
    choose(*m_products, dtypeName(m_facts->study.matmulType));
    const Fp8Recipe fp8 = m_facts->study.fp8;
    m_typesLine->setRemark(fp8 == Fp8Recipe::None
            ? QString()
            : tr("products of the layers: FP8, scaling %1").arg(QString::fromLatin1(fp8RecipeName(fp8))));
    showOptimizer();
    // Each problem once, at the line that says most: those of the editors further down.
    std::set<const Problem*> known;
    std::map<Field*, const Problem*> problems;
    for (auto editor = m_editors.rbegin(); editor != m_editors.rend(); ++editor) {
        const Problem* problem = m_facts->findProblem(editor->path.toStdString());
        if (problem != nullptr && known.insert(problem).second)
            problems[editor->field] = problem;
    }
    for (Field* line : m_lines) {
        const Problem* problem = problems[line];
        const bool isError = problem == nullptr || problem->severity == Severity::Error;
        line->setProblem(problem != nullptr ? QString::fromStdString(problem->message) : QString(),
            isError ? ColourRole::Error : ColourRole::Warning);
    }
}

void ModelSection::showOptimizer()
{
    const auto* sgd = std::get_if<SgdOptimizer>(&m_facts->study.optimizer);
    const auto* adam = std::get_if<AdamOptimizer>(&m_facts->study.optimizer);
    choose(*m_optimizer, optimizerName(m_facts->study.optimizer));
    const QString kind = QStringLiteral("optimizer.%1.").arg(QLatin1String(optimizerName(m_facts->study.optimizer)));
    for (Editor& editor : m_editors) {
        if (editor.widget == m_rate)
            editor.path = kind + QLatin1String("learning_rate");
    }
    m_rateLine->setVisible(sgd != nullptr || adam != nullptr);
    m_momentum->setVisible(sgd != nullptr);
    m_momentumLabel->setVisible(sgd != nullptr);
    if (sgd != nullptr) {
        m_rate->setValue(numberText(sgd->learningRate));
        m_momentum->setValue(numberText(sgd->momentum));
    } else if (adam != nullptr) {
        m_rate->setValue(numberText(adam->learningRate));
    }
}

void ModelSection::chooseOptimizer(const QString& kind)
{
    if (kind == QLatin1String(optimizerName(m_facts->study.optimizer)))
        return;
    if (kind == QLatin1String("sgd"))
        setOptimizer(SgdOptimizer{});
    else if (kind == QLatin1String("adam"))
        setOptimizer(AdamOptimizer{});
    else if (kind == QLatin1String("adamw"))
        setOptimizer(AdamOptimizer::adamW());
    else
        setOptimizer(NoOptimizer{});
}

/// The whole of it: a study may have just a word there, into which no path leads. What is as it always is stays out.
void ModelSection::setOptimizer(const Optimizer& optimizer)
{
    const QString value = QString::fromStdString(optimizerValue(optimizer, false));
    Q_EMIT edited({setting(QStringLiteral("optimizer"), value)});
}

bool ModelSection::focusField(const QString& path)
{
    for (auto editor = m_editors.rbegin(); editor != m_editors.rend(); ++editor) {
        if (!path.startsWith(editor->path) || editor->field->isHidden() || editor->widget->isHidden())
            continue;
        editor->widget->setFocus();
        return true;
    }
    return false;
}

} // namespace meshwright::ui

#include "moc_model_section.cpp"
