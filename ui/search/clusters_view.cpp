// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/clusters_view.h"

#include "core/models/model_file.h"
#include "core/study/document.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "sim/search/plan_reasons.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QFileDialog>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QShortcut>

#include <filesystem>

namespace meshwright::ui {

namespace {

constexpr int kRowRole = Qt::UserRole; ///< index into the rows
constexpr int kLeastDetails = 3; ///< lines
const QString kUsualModel = QStringLiteral("llama3_8b");

enum Column { Cluster, Days, Cost, Step, Rate, Mfu, Memory, Plan, Note };

QString fromWords(const std::string& words)
{
    return QString::fromStdString(words);
}

QStringList listed(const QLineEdit& field)
{
    QStringList words;
    for (const QString& word : field.text().split(QLatin1Char(',')))
        words << word.trimmed();
    words.removeAll(QString());
    return words;
}

void addTo(QLineEdit& field, const QString& word)
{
    field.setText((listed(field) << word).join(QStringLiteral(", ")));
    field.setFocus();
}

const std::vector<std::pair<std::string, TransformerConfig>>& shippedConfigs()
{
    static const auto kConfigs = [] {
        std::vector<std::pair<std::string, TransformerConfig>> configs;
        for (const std::string& name : shippedModels()) {
            std::vector<std::string> ignored;
            if (auto config = sim::modelNamed(name, nullptr, ignored))
                configs.emplace_back(name, *std::move(config));
        }
        return configs;
    }();
    return kConfigs;
}

/// The model that comes with Meshwright and has the same sizes; empty: none has.
QString shippedModelOf(const Study& study)
{
    if (study.transformer() == nullptr)
        return {};
    for (auto [name, config] : shippedConfigs()) {
        config.name = study.transformer()->config.name;
        if (config == study.transformer()->config)
            return fromWords(name);
    }
    return {};
}

/// The name of the study's model where it comes with Meshwright, else its file; empty where it has a model of its own.
QString modelOf(const sim::Analysis& analysis)
{
    if (const QString shipped = shippedModelOf(*analysis.study); !shipped.isEmpty())
        return shipped;
    const Document document = parseDocument(analysis.source.text, analysis.source.file);
    const DocNode* node = &document.root;
    for (const char* key : {"model", "transformer", "config"}) {
        node = node->find(key);
        if (node == nullptr)
            return {};
    }
    const std::filesystem::path file = analysis.study->resolved(node->text);
    std::error_code error;
    return fromWords(std::filesystem::exists(file, error) ? file.string() : node->text);
}

/// "64xh100"; empty without a machine.
QString machineOf(const sim::Analysis& analysis)
{
    if (!analysis.machine)
        return {};
    const sim::Machine& machine = *analysis.machine;
    return QStringLiteral("%1x%2")
        .arg(machine.deviceCount() / std::max<std::int64_t>(1, machine.chip.devicesPerChip))
        .arg(fromWords(machine.chip.key));
}

/// The last part of a path, behind its folder where it is called as all are: "Qwen3-8B/config.json".
QString shortName(const QString& model)
{
    const std::filesystem::path path = model.toStdString();
    return fromWords(
        path.filename() == "config.json" ? (path.parent_path().filename() / path.filename()).string() : path.filename().string());
}

} // namespace

ClustersView::ClustersView(std::shared_ptr<const sim::Catalogue> catalogue, QWidget* parent)
    : View(parent)
    , m_catalogue(std::move(catalogue))
    , m_filledModel(kUsualModel)
    , m_models(new QLineEdit(kUsualModel, this))
    , m_machines(new QLineEdit(this))
    , m_tokens(new QLineEdit(QStringLiteral("2T"), this))
    , m_sequence(new QLineEdit(this))
    , m_prices(new QLineEdit(this))
    , m_compare(new QPushButton(tr("&Compare"), this))
    , m_cancel(new QPushButton(tr("Cancel"), this))
    , m_escape(new QShortcut(QKeySequence(Qt::Key_Escape), this))
    , m_save(new QPushButton(tr("Save page…"), this))
    , m_open(new QPushButton(tr("Open as a study"), this))
    , m_status(new QLabel(this))
    , m_notice(new ui::Notice(this))
    , m_table(new Table(
          {tr("Cluster"), tr("Time"), tr("Cost"), tr("Step"), tr("Tokens/s"), tr("MFU"), tr("Memory"), tr("Plan"), tr("Note")},
          tr("Clusters"), this))
    , m_details(new QLabel(this))
{
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("How far the comparison is"));
    m_cancel->setToolTip(tr("Stops, and keeps the rows found so far (Esc)"));
    m_save->setToolTip(tr("Saves the comparison as a page, PDF, Markdown or CSV"));
    m_open->setToolTip(tr("Opens the best plan of the row that is selected as a study with all its views"));
    m_details->setTextFormat(Qt::PlainText);
    m_details->setWordWrap(true);
    m_details->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_details->setMinimumHeight(kLeastDetails * fontMetrics().lineSpacing());
    m_details->setAccessibleName(tr("What the row rests on"));
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_table->headerItem()->setTextAlignment(Plan, Qt::AlignLeft | Qt::AlignVCenter);
    m_table->headerItem()->setTextAlignment(Note, Qt::AlignLeft | Qt::AlignVCenter);

    auto* controls = new QHBoxLayout;
    controls->addWidget(m_compare);
    controls->addWidget(m_cancel);
    controls->addWidget(m_status, 1);
    controls->addWidget(m_open);
    controls->addWidget(m_save);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(form());
    layout->addLayout(controls);
    layout->addWidget(m_notice);
    layout->addWidget(m_table, 1);
    layout->addWidget(m_details);

    connect(m_compare, &QPushButton::clicked, this, &ClustersView::compare);
    for (QLineEdit* field : {m_models, m_machines, m_tokens, m_sequence, m_prices}) {
        connect(field, &QLineEdit::returnPressed, this, &ClustersView::compare);
        connect(field, &QLineEdit::textChanged, this, &ClustersView::showControls);
    }
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        m_job.cancel();
        m_status->setText(tr("Cancelled."));
        showRows(); // those that were not looked at wait no more
    });
    connect(m_escape, &QShortcut::activated, m_cancel, &QPushButton::click);
    connect(m_save, &QPushButton::clicked, this, &ClustersView::saveRequested);
    connect(m_open, &QPushButton::clicked, this, &ClustersView::openStudy);
    connect(m_table, &QTreeWidget::itemActivated, this, &ClustersView::openStudy);
    connect(m_table, &QTreeWidget::currentItemChanged, this, &ClustersView::showDetails);
    connect(&m_job, &ClustersJob::begun, this, [this](std::size_t index) {
        m_rows[index].isBegun = true;
        showRows();
        const sim::PlanWords& words = m_rows[index].words;
        m_status->setText(tr("%1 of %2: %3 on %4…")
                              .arg(index + 1)
                              .arg(m_rows.size())
                              .arg(shortName(fromWords(words.model)), fromWords(words.machine)));
    });
    connect(&m_job, &ClustersJob::found, this,
        [this](std::size_t index, const std::shared_ptr<const Result<sim::PlanAnswer>>& answer) {
            m_rows[index].answer = answer;
            showRows();
        });
    connect(&m_job, &ClustersJob::finished, this, [this] {
        m_status->setText(tr("Select a row to see its assumptions."));
        showControls();
    });
    showRows();
}

/// Below one another what is listed, beside one another the figures; Tab goes along them.
QWidget* ClustersView::form()
{
    auto* form = new QWidget(this);
    auto* grid = new QGridLayout(form);
    grid->setContentsMargins(0, 0, 0, 0);
    const auto labelOf = [&](const QString& name, QLineEdit* field, const QString& meaning) {
        auto* label = new QLabel(name, form);
        label->setBuddy(field);
        field->setToolTip(meaning);
        field->setAccessibleName(name);
        return label;
    };
    const auto addList = [&](int row, QLabel* label, QLineEdit* field, const QString& adds) {
        auto* button = new QPushButton(tr("Add"), form);
        button->setToolTip(adds);
        button->setAccessibleName(adds);
        grid->addWidget(label, row, 0);
        grid->addWidget(field, row, 1);
        grid->addWidget(button, row, 2);
        return button;
    };
    QPushButton* addModel = addList(0,
        labelOf(tr("Models"), m_models, tr("Models that come with Meshwright and config.json files, separated by commas")),
        m_models, tr("Add a model"));
    QPushButton* addCluster = addList(1,
        labelOf(tr("Clusters"), m_machines, tr("Chips and how many, separated by commas: 64xH100, v5p-128, 72xB200")), m_machines,
        tr("Add a cluster"));
    addModelMenu(*addModel);
    addClusterMenu(*addCluster);
    m_machines->setPlaceholderText(QStringLiteral("64xH100, v5p-128, 72xB200"));
    m_sequence->setPlaceholderText(tr("4k"));
    m_prices->setPlaceholderText(tr("$ an hour and chip; published prices"));
    auto* figures = new QHBoxLayout;
    grid->addWidget(labelOf(tr("Tokens"), m_tokens, tr("Of the whole training, in thousands: 300B, 2T")), 2, 0);
    figures->addWidget(m_tokens, 2);
    figures->addWidget(labelOf(
        tr("Sequence"), m_sequence, tr("Tokens of a sequence: 4k, 8k; empty: 4k, or as many as the model has positions")));
    figures->addWidget(m_sequence, 2);
    figures->addWidget(labelOf(tr("Price"), m_prices,
        tr("Dollars an hour for a chip: one for all clusters, or one each in their order; empty: the last published price")));
    figures->addWidget(m_prices, 5);
    grid->addLayout(figures, 2, 1, 1, 2);
    QWidget* before = m_models;
    for (QWidget* next : std::initializer_list<QWidget*>{
             addModel, m_machines, addCluster, m_tokens, m_sequence, m_prices, m_compare, m_cancel, m_open, m_save, m_table}) {
        setTabOrder(before, next);
        before = next;
    }
    return form;
}

void ClustersView::addModelMenu(QPushButton& button)
{
    auto* menu = new QMenu(&button);
    menu->addAction(tr("A config.json…"), this, [this] {
        const QString path = QFileDialog::getOpenFileName(this, tr("Add a model"), {}, tr("Models (*.json);;All files (*)"));
        if (!path.isEmpty())
            addTo(*m_models, path);
    });
    menu->addSeparator();
    for (const std::string& name : shippedModels())
        menu->addAction(fromWords(name), this, [this, name] { addTo(*m_models, fromWords(name)); });
    button.setMenu(menu);
}

void ClustersView::addClusterMenu(QPushButton& button)
{
    constexpr std::int64_t kUsualChips = 64;
    auto* menu = new QMenu(&button);
    for (const sim::Chip& chip : m_catalogue->chips()) {
        const QString name = QStringLiteral("%1x%2").arg(kUsualChips).arg(fromWords(chip.key));
        menu->addAction(fromWords(chip.name), this, [this, name] { addTo(*m_machines, name); });
    }
    button.setMenu(menu);
}

/// What was written into a field follows the study, until its user writes something else there.
void ClustersView::fill(QLineEdit& field, QString& filled, const QString& text)
{
    if (text.isEmpty() || field.text() != filled)
        return;
    filled = text;
    field.setText(text);
}

void ClustersView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    if (!analysis->study)
        return;
    fill(*m_models, m_filledModel, modelOf(*analysis));
    fill(*m_machines, m_filledMachine, machineOf(*analysis));
}

/// What is asked for, model by model; with a problem there are none.
std::vector<ClustersView::Row> ClustersView::rowsOfFields(QString& problem) const
{
    const QStringList models = listed(*m_models);
    const QStringList machines = listed(*m_machines);
    const QStringList prices = listed(*m_prices);
    if (models.isEmpty())
        problem = tr("Name a model.");
    else if (machines.isEmpty())
        problem = tr("Name a cluster: chips and how many, such as 64xH100.");
    else if (m_tokens->text().trimmed().isEmpty())
        problem = tr("Say how many tokens the training has, such as 2T.");
    else if (prices.size() > 1 && prices.size() != machines.size())
        problem = tr("There are %1 for %2. Give one for all, or one each in their order.")
                      .arg(fromWords(counted(prices.size(), "price")), fromWords(counted(machines.size(), "cluster")));
    std::vector<Row> rows;
    if (!problem.isEmpty())
        return rows;
    for (const QString& model : models) {
        for (qsizetype i = 0; i < machines.size(); ++i) {
            sim::PlanWords words;
            words.model = model.toStdString();
            words.machine = machines[i].toStdString();
            words.tokens = m_tokens->text().trimmed().toStdString();
            words.sequence = m_sequence->text().trimmed().toStdString();
            if (!prices.isEmpty())
                words.price = prices[prices.size() == 1 ? 0 : i].toStdString();
            rows.push_back({std::move(words), nullptr, false});
        }
    }
    return rows;
}

void ClustersView::compare()
{
    QString problem;
    std::vector<Row> rows = rowsOfFields(problem);
    m_notice->show(problem);
    if (!problem.isEmpty())
        return;
    m_rows = std::move(rows);
    m_clusters = m_rows.size() / static_cast<std::size_t>(listed(*m_models).size());
    std::vector<sim::PlanWords> trainings;
    for (const Row& row : m_rows)
        trainings.push_back(row.words);
    m_job.start(std::move(trainings));
    showRows();
}

std::vector<sim::PlanAnswer> ClustersView::answers(std::size_t first, std::size_t count) const
{
    std::vector<sim::PlanAnswer> found;
    for (std::size_t i = first; i < first + count; ++i) {
        if (m_rows[i].answer && *m_rows[i].answer)
            found.push_back(**m_rows[i].answer);
    }
    return found;
}

bool ClustersView::hasReport() const
{
    return std::any_of(m_rows.begin(), m_rows.end(), [](const Row& row) { return row.answer && *row.answer; });
}

sim::Report ClustersView::report() const
{
    return sim::planComparison(answers(0, m_rows.size()), command().toStdString());
}

void ClustersView::showControls()
{
    const bool isBusy = m_job.isBusy();
    m_compare->setEnabled(!isBusy);
    m_cancel->setEnabled(isBusy);
    m_escape->setEnabled(isBusy);
    m_save->setEnabled(!isBusy && hasReport());
    const Row* row = currentRow();
    m_open->setEnabled(row != nullptr && row->answer && *row->answer && !(*row->answer)->study.empty());
    if (m_rows.empty() && !isBusy && m_status->text().isEmpty())
        m_status->setText(tr("How long each model trains on each cluster, and what that costs."));
}

const ClustersView::Row* ClustersView::currentRow() const
{
    const QTreeWidgetItem* item = m_table->currentItem();
    return item == nullptr || item->parent() == nullptr ? nullptr : &m_rows[item->data(0, kRowRole).toUInt()];
}

void ClustersView::showRows()
{
    const QTreeWidgetItem* current = m_table->currentItem();
    const int selected = current != nullptr && current->parent() != nullptr ? current->data(0, kRowRole).toInt() : -1;
    m_table->clear();
    for (std::size_t first = 0; first < m_rows.size(); first += m_clusters) {
        const std::vector<sim::PlanAnswer> found = answers(first, m_clusters);
        const QString name = found.empty() ? shortName(fromWords(m_rows[first].words.model))
                                           : QStringLiteral("%1, %2").arg(fromWords(found.front().model),
                                               tr("%1 parameters").arg(fromWords(formatCount(found.front().parameters))));
        QTreeWidgetItem* group = m_table->addGroup({name});
        group->setFirstColumnSpanned(true); // the other columns are of its rows
        group->setToolTip(0, fromWords(m_rows[first].words.model));
        const std::vector<std::string> verdicts = sim::planVerdicts(found);
        std::size_t answer = 0;
        for (std::size_t i = first; i < first + m_clusters; ++i) {
            auto* item = new QTreeWidgetItem(group);
            item->setData(0, kRowRole, static_cast<uint>(i));
            fillRow(*item, m_rows[i]);
            if (m_rows[i].answer && *m_rows[i].answer)
                item->setText(Note, fromWords(verdicts[answer++]));
            item->setToolTip(Note, item->text(Note));
            if (static_cast<int>(i) == selected)
                m_table->setCurrentItem(item);
        }
    }
    m_table->fitColumns();
    showDetails();
}

void ClustersView::fillRow(QTreeWidgetItem& item, const Row& row) const
{
    item.setText(Cluster, fromWords(row.words.machine));
    for (int column = Days; column <= Memory; ++column)
        item.setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    if (!row.answer)
        return item.setText(Note, !m_job.isBusy() ? tr("not looked at") : row.isBegun ? tr("searching…") : tr("waits"));
    if (!*row.answer)
        return item.setText(Note, fromWords(row.answer->error().front().message));
    const sim::PlanAnswer& answer = **row.answer;
    item.setText(Cluster, fromWords(answer.cluster));
    if (!answer.fits()) {
        for (int column = 0; column < m_table->columnCount(); ++column)
            item.setForeground(column, palette().color(QPalette::PlaceholderText));
        return;
    }
    const sim::FoundPlan& plan = answer.plans.front();
    item.setText(Days, fromWords(sim::formatDays(answer.time.days)));
    item.setText(Cost, answer.time.dollars ? fromWords(sim::formatDollars(*answer.time.dollars)) : tr("no price"));
    item.setText(Step, fromWords(formatSeconds(answer.time.stepSeconds)));
    item.setText(Rate, fromWords(formatCount(answer.time.tokensPerSecond)));
    item.setText(Mfu, QStringLiteral("%1 %").arg(100.0 * answer.time.mfu, 0, 'f', 0));
    item.setText(Memory, fromWords(formatBytes(plan.peakBytes)));
    item.setText(Plan, fromWords(sim::meshText(plan.mesh)));
}

void ClustersView::showDetails()
{
    const Row* row = currentRow();
    QStringList lines;
    if (row != nullptr && row->answer && !*row->answer)
        lines << fromWords(describe(row->answer->error()));
    if (row != nullptr && row->answer && *row->answer) {
        const sim::PlanAnswer& answer = **row->answer;
        if (answer.fits()) {
            lines << tr("%1: %2").arg(fromWords(sim::meshText(answer.plans.front().mesh)),
                fromWords(answer.plans.front().why.empty() ? answer.plans.front().boundBy : answer.plans.front().why.front()));
            if (!answer.rangeFrom.empty())
                lines << tr("By published runs %1").arg(fromWords(answer.rangeText()));
        }
        for (const std::string& why : answer.whyNone)
            lines << fromWords(why);
        for (const std::string& change : answer.changesThatFit)
            lines << tr("It would fit with %1").arg(fromWords(change));
        if (answer.price)
            lines << tr("$%1 an hour and chip: %2")
                         .arg(answer.price->dollarsPerHour, 0, 'f', 2)
                         .arg(fromWords(answer.price->source));
    }
    m_details->setText(lines.mid(0, kLeastDetails).join(QLatin1Char('\n')));
    m_details->setToolTip(lines.join(QLatin1Char('\n')));
    showControls();
}

void ClustersView::openStudy()
{
    const Row* row = currentRow();
    if (row == nullptr || !row->answer || !*row->answer || (*row->answer)->study.empty())
        return;
    const sim::PlanAnswer& answer = **row->answer;
    Q_EMIT studyRequested(answer.study, fromWords(answer.model + " on " + answer.cluster));
}

DisplayList ClustersView::picture() const
{
    return tablePicture(*m_table, "clusters", "nothing was compared");
}

QString ClustersView::command() const
{
    QString problem;
    const std::vector<Row> asked = m_rows.empty() ? rowsOfFields(problem) : m_rows;
    QStringList lines;
    for (const Row& row : asked)
        lines << fromWords(sim::planCommand(row.words));
    return lines.isEmpty() ? QStringLiteral("meshwright plan --help") : lines.join(QLatin1Char('\n'));
}

} // namespace meshwright::ui

#include "moc_clusters_view.cpp"
