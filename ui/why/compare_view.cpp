// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/why/compare_view.h"

#include "core/support/counted.h"
#include "sim/compare/gates.h"
#include "sim/session/comparable_of.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTabBar>

#include <cmath>

namespace meshwright::ui {

namespace {

QString fromWords(const std::string& words)
{
    return QString::fromStdString(words);
}

/// "+4.59 ms (+14.9 %)"; empty where nothing changed.
QString differenceOf(const sim::FigureChange& change)
{
    if (!change.changed())
        return {};
    const double by = change.after.value - change.before.value;
    const QString sign = by < 0.0 ? QStringLiteral("\u2212") : QStringLiteral("+");
    QString text = sign + fromWords(quantityText(std::fabs(by), change.before.quantity));
    if (std::isfinite(change.relative()))
        text += QStringLiteral(" (%1%2 %)").arg(sign).arg(100.0 * std::fabs(change.relative()), 0, 'f', 1);
    return text;
}

QString sideText(const std::optional<sim::ComparedArray>& array)
{
    if (!array)
        return QStringLiteral("–");
    return fromWords(
        array->spec + (array->pieceBytes ? ", " + formatBytes(static_cast<double>(*array->pieceBytes)) : std::string()));
}

QString sideText(const std::optional<sim::ComparedCollective>& use)
{
    if (!use)
        return QStringLiteral("–");
    return QStringLiteral("%1 × %2")
        .arg(use->calls)
        .arg(
            fromWords(formatBytes(static_cast<double>(use->bytes) / static_cast<double>(std::max<std::int64_t>(1, use->calls)))));
}

} // namespace

CompareView::CompareView(Baselines& baselines, QWidget* parent)
    : View(parent)
    , m_baselines(baselines)
    , m_tabs(new QTabBar(this))
    , m_pin(new QPushButton(tr("Pin this state"), this))
    , m_take(new QPushButton(tr("Go to it"), this))
    , m_pinFile(new QPushButton(tr("Pin a file…"), this))
    , m_status(new QLabel(this))
    , m_gates(new QComboBox(this))
    , m_badGates(new Notice(this))
    , m_table(new Table({tr("What differs"), tr("Pinned"), tr("Now"), tr("Difference")}, tr("Differences"), this))
{
    m_tabs->setDocumentMode(true);
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setTabsClosable(true);
    m_tabs->setAccessibleName(tr("Pinned states"));
    m_pin->setToolTip(tr("Keeps the study as it stands, to compare with it (Ctrl+D)"));
    m_pinFile->setToolTip(tr("Keeps another study, or a result that Meshwright wrote as JSON (of simulate, check, train or "
                             "sweep), to compare with it"));
    m_take->setToolTip(tr("Restores the study as it was when it was pinned; Undo goes back"));
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("How the study differs"));
    m_gates->setEditable(true);
    m_gates->setInsertPolicy(QComboBox::NoInsert);
    m_gates->setCompleter(nullptr); // Return takes what was typed, and no more
    m_gates->addItems({QString(), QStringLiteral("fits, time>5%, memory>5%"), QStringLiteral("new-collectives, bytes>1%"),
        QStringLiteral("sharding, problems"), QStringLiteral("any")});
    m_gates->lineEdit()->setPlaceholderText(tr("nothing: choose or type what may not differ"));
    m_gates->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_gates->setMinimumContentsLength(12);
    m_gates->setAccessibleName(tr("Gates"));
    m_gates->setToolTip(tr("Gates, as in diff --fail-on: %1; bytes, time and memory with a bound, as in time>5%")
                            .arg(fromWords(join(sim::gateNames(), ", "))));
    auto* gatesLabel = new QLabel(tr("&Fail on"), this);
    gatesLabel->setBuddy(m_gates);
    auto* row = new QHBoxLayout;
    row->addWidget(m_pin);
    row->addWidget(m_pinFile);
    row->addSpacing(10);
    row->addWidget(gatesLabel);
    row->addWidget(m_gates, 4);
    row->addStretch(1);
    row->addWidget(m_take);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addLayout(row);
    layout->addWidget(m_tabs);
    layout->addWidget(m_status);
    layout->addWidget(m_badGates);
    layout->addWidget(m_table, 1);
    connect(m_pin, &QPushButton::clicked, this, &CompareView::pinRequested);
    connect(m_gates, &QComboBox::activated, this, &CompareView::compareNow);
    connect(m_gates->lineEdit(), &QLineEdit::editingFinished, this, &CompareView::compareNow);
    connect(m_pinFile, &QPushButton::clicked, this, &CompareView::fileRequested);
    connect(m_take, &QPushButton::clicked, this, [this] {
        const Baselines::Pinned& pinned = *m_baselines.current();
        Q_EMIT stateChosen(pinned.analysis->source, pinned.name);
    });
    connect(m_tabs, &QTabBar::currentChanged, this, [this](int index) {
        if (index >= 0)
            m_baselines.setCurrent(static_cast<std::size_t>(index));
    });
    connect(
        m_tabs, &QTabBar::tabCloseRequested, this, [this](int index) { m_baselines.remove(static_cast<std::size_t>(index)); });
    connect(&m_baselines, &Baselines::changed, this, [this] {
        showTabs();
        compareNow();
    });
    setFocusProxy(m_table);
    showTabs();
    compareNow();
}

void CompareView::forgetStudy()
{
    m_isOld = false;
    m_analysis.reset();
    compareNow();
}

void CompareView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_isOld = !analysis->built && !analysis->simulated;
    if (!m_isOld)
        m_analysis = std::move(analysis);
    compareNow();
}

void CompareView::showTabs()
{
    const QSignalBlocker blocker(m_tabs);
    while (m_tabs->count() > 0)
        m_tabs->removeTab(0);
    for (const Baselines::Pinned& pinned : m_baselines.all()) {
        const int tab = m_tabs->addTab(pinned.name);
        m_tabs->setTabToolTip(tab, pinned.name);
        if (&pinned == m_baselines.current())
            m_tabs->setCurrentIndex(tab);
    }
    m_tabs->setVisible(m_tabs->count() > 0);
}

void CompareView::compareNow()
{
    const Baselines::Pinned* pinned = m_baselines.current();
    m_pin->setEnabled(m_analysis != nullptr);
    // A state of another file is not written into this one.
    m_take->setEnabled(pinned != nullptr && pinned->analysis && m_analysis
        && pinned->analysis->source.file == m_analysis->source.file && pinned->analysis->source != m_analysis->source);
    m_comparison.reset();
    m_table->clear();
    m_badGates->show({});
    if (pinned == nullptr || !m_analysis) {
        m_status->setText(tr("Pin the study as it stands, then change it, or pin a file: what differs is listed here."));
        return;
    }
    m_comparison = pinned->analysis ? sim::compareStudies(*pinned->analysis, *m_analysis)
                                    : sim::compare(*pinned->result, sim::comparableOf(*m_analysis));
    m_status->setText(m_comparison->same() ? tr("Nothing differs.")
            : m_comparison->sentence.empty()
            ? tr("The layouts of %1 and %2 differ.")
                  .arg(QString::fromStdString(counted(m_comparison->arrays.size(), "array")),
                      QString::fromStdString(counted(m_comparison->collectives.size(), "collective")))
            : shownSentence(m_comparison->sentence));
    if (m_isOld)
        m_status->setText(tr("The study has problems; its last good state is compared. %1").arg(m_status->text()));
    m_table->setEnabled(!m_isOld);
    addGates();
    addFigures();
    addDifferences();
    for (QTreeWidgetItemIterator item(m_table); *item != nullptr; ++item) {
        (*item)->setToolTip(0, (*item)->text(0));
        for (int column = 1; column < m_table->columnCount(); ++column)
            (*item)->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
    m_table->fitColumns();
}

QString CompareView::gates() const
{
    return m_gates->currentText().trimmed();
}

void CompareView::setGates(const QString& text)
{
    m_gates->setEditText(text);
    compareNow();
}

/// Those that fail first, each with what makes it fail.
void CompareView::addGates()
{
    if (gates().isEmpty())
        return;
    const auto given = sim::parseGates(gates().remove(QLatin1Char(' ')).toStdString());
    const auto judged = given ? sim::judge(*given, *m_comparison) : Result<std::vector<sim::GateResult>>(given.error());
    if (!judged)
        return m_badGates->show(fromWords(describe(judged.error())), Notice::Level::Error);
    std::vector<sim::GateResult> results = *judged;
    std::ranges::stable_partition(results, [](const sim::GateResult& result) { return !result.passes(); });
    const auto failing = std::ranges::count_if(results, [](const sim::GateResult& result) { return !result.passes(); });
    QTreeWidgetItem* group
        = m_table->addGroup({failing == 0 ? tr("Gates: all pass") : tr("Gates: %1 of %2 fail").arg(failing).arg(results.size())});
    for (const sim::GateResult& result : results) {
        auto* row
            = new QTreeWidgetItem(group, {fromWords(result.gate.text), {}, {}, result.passes() ? tr("passes") : tr("FAILS")});
        for (const std::string& finding : result.findings) {
            auto* why = new QTreeWidgetItem(row, {fromWords(finding)});
            why->setFirstColumnSpanned(true);
        }
        row->setExpanded(true);
    }
}

void CompareView::addFigures()
{
    QTreeWidgetItem* group = m_table->addGroup({tr("Figures")});
    for (const sim::FigureChange& change : m_comparison->figures)
        new QTreeWidgetItem(group,
            {fromWords(change.after.name), fromWords(quantityText(change.before.value, change.before.quantity)),
                fromWords(quantityText(change.after.value, change.after.quantity)), differenceOf(change)});
    const auto yesOrNo = [](bool fits) { return fits ? tr("yes") : tr("no"); };
    if (const auto& fits = m_comparison->fits)
        new QTreeWidgetItem(group, {tr("fits"), yesOrNo(*fits->before), yesOrNo(*fits->after)});
    if (const auto& bound = m_comparison->boundBy)
        new QTreeWidgetItem(group, {tr("bound by"), shownSentence(*bound->before), shownSentence(*bound->after)});
    if (const auto& mesh = m_comparison->mesh)
        new QTreeWidgetItem(group, {tr("mesh"), fromWords(sim::axesText(*mesh->before)), fromWords(sim::axesText(*mesh->after))});
}

void CompareView::addDifferences()
{
    const sim::Comparison& comparison = *m_comparison;
    if (comparison.comparesArrays) {
        QTreeWidgetItem* group = m_table->addGroup(
            {tr("Arrays (%1 differ, %2 are the same)").arg(comparison.arrays.size()).arg(comparison.sameArrays)});
        for (const auto& change : comparison.arrays)
            new QTreeWidgetItem(group, {fromWords(change.either().name), sideText(change.before), sideText(change.after)});
    }
    if (comparison.comparesCollectives) {
        QTreeWidgetItem* group = m_table->addGroup(
            {tr("Collectives (%1 differ, %2 are the same)").arg(comparison.collectives.size()).arg(comparison.sameCollectives)});
        for (const auto& change : comparison.collectives)
            new QTreeWidgetItem(
                group, {fromWords(sim::collectiveText(change.either())), sideText(change.before), sideText(change.after)});
    }
    if (!comparison.problems.empty()) {
        QTreeWidgetItem* group = m_table->addGroup({tr("Problems")});
        for (const auto& change : comparison.problems)
            new QTreeWidgetItem(group,
                {fromWords(change.either().message), change.isNew() ? QString() : tr("is there"),
                    change.isGone() ? QString() : tr("is there")});
    }
}

DisplayList CompareView::picture() const
{
    return tablePicture(*m_table, "differences", "nothing is pinned");
}

QString CompareView::command() const
{
    const Baselines::Pinned* pinned = m_baselines.current();
    if (pinned == nullptr || !m_analysis)
        return QStringLiteral("meshwright diff --help");
    const auto side = [](const sim::StudySource& source, const char* flag) {
        return studyArguments(source).replace(QStringLiteral(" --set "), QString::fromLatin1(flag));
    };
    const QString failOn
        = gates().isEmpty() ? QString() : QStringLiteral(" --fail-on ") + shellQuoted(gates().remove(QLatin1Char(' ')));
    return QStringLiteral("meshwright diff %1 %2%3")
        .arg(pinned->analysis ? side(pinned->analysis->source, " --set-a ") : shellQuoted(fromWords(pinned->result->file)),
            side(m_analysis->source, " --set-b "), failOn);
}

} // namespace meshwright::ui

#include "moc_compare_view.cpp"
