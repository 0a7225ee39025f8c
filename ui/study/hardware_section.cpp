// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/hardware_section.h"

#include "core/support/text.h"
#include "sim/hardware/hardware_name.h"
#include "ui/study/field.h"
#include "ui/study/value_edit.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QCompleter>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QSpinBox>
#include <QStandardItemModel>

namespace meshwright::ui {

namespace {

constexpr int kNameRole = Qt::UserRole;

QSpinBox* countBox(const QString& name)
{
    auto* box = new QSpinBox;
    box->setRange(1, 1 << 20);
    box->setKeyboardTracking(false);
    box->setAlignment(Qt::AlignRight);
    box->setAccessibleName(name);
    // Its own hint leaves room for the largest count; two of them are wider than the panel.
    box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    keepWheelForFocus(box);
    return box;
}

/// Two editors on one line, with a word between them.
QWidget* sideBySide(QWidget* first, const QString& between, QWidget* second)
{
    auto* both = new QWidget;
    auto* line = new QHBoxLayout(both);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(6);
    line->addWidget(first, 1);
    line->addWidget(new QLabel(between));
    line->addWidget(second, 1);
    return both;
}

} // namespace

HardwareSection::HardwareSection(const sim::Catalogue& catalogue, QWidget* parent)
    : Section(tr("Hardware"), parent)
    , m_catalogue(catalogue)
    , m_chip(new QComboBox)
    , m_names(new QStandardItemModel(this))
    , m_topology(new ValueEdit)
    , m_slices(countBox(tr("Slices")))
    , m_hosts(countBox(tr("Hosts")))
    , m_perHost(countBox(tr("Chips of a host")))
    , m_profile(new ToneLabel(ColourRole::MutedText))
{
    m_chip->setEditable(true);
    m_chip->setInsertPolicy(QComboBox::NoInsert);
    m_chip->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_chip->setMinimumContentsLength(12);
    m_chip->lineEdit()->setPlaceholderText(tr("choose a chip"));
    keepWheelForFocus(m_chip);
    fillChips();
    m_chipField = new Field(tr("Chip"), m_chip);

    m_topology->setPlaceholderText(QStringLiteral("4x2"));
    m_topology->setCheck([this](const QString& text) { return topologyProblem(text); });
    m_topology->setAccessibleName(tr("Topology"));
    m_slices->setToolTip(tr("Slices of this topology, which the data centre's network joins"));
    m_topologyField = new Field(tr("Topology"), sideBySide(m_topology, QStringLiteral("×"), m_slices));

    m_perHost->setSuffix(tr(" chips"));
    m_hostsField = new Field(tr("Hosts"), sideBySide(m_hosts, tr("of"), m_perHost));
    m_profile->hide();

    for (QWidget* field : std::initializer_list<QWidget*>{m_chipField, m_topologyField, m_hostsField, m_profile})
        body().addWidget(field);

    connect(
        m_chip, &QComboBox::activated, this, [this](int index) { chooseChip(m_chip->itemData(index, kNameRole).toString()); });
    connect(m_chip->lineEdit(), &QLineEdit::editingFinished, this, &HardwareSection::finishTyping);
    connect(m_chip->lineEdit(), &QLineEdit::textEdited, this, [this] { m_chipField->setTyped({}); });
    connect(m_topology, &ValueEdit::problemChanged, m_topologyField, &Field::setTyped);
    connect(m_topology, &ValueEdit::committed, this, &HardwareSection::commitTopology);
    connect(m_slices, &QSpinBox::valueChanged, this, &HardwareSection::commitSlices);
    connect(m_hosts, &QSpinBox::valueChanged, this, &HardwareSection::commitHosts);
    connect(m_perHost, &QSpinBox::valueChanged, this, &HardwareSection::commitHosts);
}

/// The list has each chip once; typing finds it by any of its names.
void HardwareSection::fillChips()
{
    for (const sim::Chip& chip : m_catalogue.chips()) {
        m_chip->addItem(QString::fromStdString(chip.name), {});
        m_chip->setItemData(m_chip->count() - 1, QString::fromStdString(chip.key), kNameRole);
    }
    for (const std::string& name : m_catalogue.names()) {
        const auto match = m_catalogue.find(name);
        if (!match)
            continue;
        auto* item = new QStandardItem(QString::fromStdString(fmt::format("{}  ({})", name, match->chip->name)));
        item->setData(QString::fromStdString(name), kNameRole);
        m_names->appendRow(item);
    }
    auto* completer = new QCompleter(m_names, this);
    completer->setFilterMode(Qt::MatchContains);
    completer->setCaseSensitivity(Qt::CaseInsensitive);
    completer->setMaxVisibleItems(12);
    m_chip->setCompleter(nullptr); // the combo box's own takes a row of the completer for a row of its list, which has other rows
    m_chip->lineEdit()->setCompleter(completer);
    m_chip->installEventFilter(this);
    completer->popup()->installEventFilter(this); // it passes the key on to the line
    connect(completer, qOverload<const QModelIndex&>(&QCompleter::activated), this, [this](const QModelIndex& index) {
        // Afterwards: the line takes the text of the row, which is not a name.
        QMetaObject::invokeMethod(
            this, [this, name = index.data(kNameRole).toString()] { chooseChip(name); }, Qt::QueuedConnection);
    });
}

/// Tab takes what is typed before it leaves: the chip decides which fields come next.
bool HardwareSection::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Tab)
        finishTyping();
    return Section::eventFilter(watched, event);
}

sim::HardwareChoice HardwareSection::choice() const
{
    const auto& hardware = m_facts->study.hardware;
    if (!hardware)
        return {};
    return {hardware->chip, hardware->topology, hardware->hosts.value_or(0), hardware->chipsPerHost.value_or(0),
        hardware->slices.value_or(0)};
}

void HardwareSection::show(const std::shared_ptr<const StudyFacts>& facts)
{
    m_facts = facts;
    const bool isProfile = facts->study.hardware && !facts->study.hardware->profile.empty();
    m_chipField->setVisible(!isProfile);
    m_profile->setNote(
        isProfile ? tr("Measured machine: %1").arg(QString::fromStdString(facts->study.hardware->profile)) : QString(),
        ColourRole::MutedText);
    showChip();
    showCounts();
    setEnabled(facts->readable);
}

void HardwareSection::showChip()
{
    const std::string name = choice().chip;
    const auto match = m_catalogue.find(name);
    const bool typing = m_chip->lineEdit()->hasFocus() && isTyped();
    if (!typing) {
        const QSignalBlocker quiet(m_chip);
        m_chip->setCurrentIndex(match ? m_chip->findData(QString::fromStdString(match->chip->key), kNameRole) : -1);
        m_shown = QString::fromStdString(match && !match->devices ? match->chip->name : name);
        m_chip->setEditText(m_shown);
        m_chip->lineEdit()->setCursorPosition(0);
    }
    const QString hint = tr("A chip by any of its names, or how many with it: v5e-64, h100x64");
    m_chip->setToolTip(match ? tr("\"%1\" in the study. %2").arg(QString::fromStdString(name), hint) : hint);
    const Problem* problem = m_facts->findProblem("hardware.chip");
    m_chipField->setProblem(problem != nullptr ? QString::fromStdString(problem->message) : QString());
    m_chipField->setRemark(m_facts->study.hardware ? QString() : tr("Without hardware nothing is predicted."));
}

void HardwareSection::showCounts()
{
    const sim::HardwareChoice now = choice();
    const auto match = m_catalogue.find(now.chip);
    const bool counts = match && !match->devices;
    const bool isTorus = match && match->chip->interconnect.kind == sim::InterconnectKind::Torus;
    m_topologyField->setVisible(counts && isTorus);
    m_hostsField->setVisible(counts && !isTorus);

    m_topology->setValue(QString::fromStdString(sim::topologyText(now.topology)));
    const sim::HardwareChoice built = m_facts->machine ? m_facts->machine->choice : now;
    const QSignalBlocker quietSlices(m_slices);
    const QSignalBlocker quietHosts(m_hosts);
    m_slices->setValue(static_cast<int>(std::clamp<std::int64_t>(now.slices, 1, m_slices->maximum())));
    m_slices->setSuffix(m_slices->value() == 1 ? tr(" slice") : tr(" slices"));
    const QSignalBlocker quietPerHost(m_perHost);
    m_hosts->setValue(static_cast<int>(std::clamp<std::int64_t>(built.hosts, 1, m_hosts->maximum())));
    m_perHost->setValue(static_cast<int>(std::clamp<std::int64_t>(built.perHost, 1, m_perHost->maximum())));
    m_perHost->setSuffix(m_perHost->value() == 1 ? tr(" chip") : tr(" chips"));

    const auto isAbout = [](const Problem& problem) {
        return problem.place.path == "hardware" || problem.place.path.starts_with("hardware.topology")
            || problem.place.path == "hardware.hosts" || problem.place.path == "hardware.per_host"
            || problem.place.path == "hardware.slices";
    };
    const auto problem = std::find_if(m_facts->problems.begin(), m_facts->problems.end(), isAbout);
    const QString text = problem != m_facts->problems.end() ? QString::fromStdString(problem->message) : QString();
    m_topologyField->setProblem(text);
    m_hostsField->setProblem(text);
    QString remark;
    if (m_facts->machine && isTorus) {
        QStringList wraps;
        for (const sim::PhysicalAxis& axis : m_facts->machine->topology.axes()) {
            if (axis.wraps)
                wraps << QString::fromStdString(axis.name);
        }
        remark = wraps.isEmpty() ? tr("No axis wraps into a ring.") : tr("Rings along %1.").arg(wraps.join(QLatin1String(", ")));
    }
    m_topologyField->setRemark(remark);
}

/// Another chip of as many devices: the topology or the hosts change with it.
void HardwareSection::chooseChip(const QString& name)
{
    if (name.isEmpty())
        return;
    takeTyped();
    const sim::HardwareChoice before = choice();
    sim::HardwareChoice wanted = before;
    wanted.chip = name.toStdString();
    const auto was = m_catalogue.find(before.chip);
    const auto is = m_catalogue.find(wanted.chip);
    if (was && is && was->chip == is->chip && was->devices == is->devices) {
        showChip(); // another name for the same
        return;
    }
    const std::int64_t devices = m_facts->machine ? m_facts->machine->deviceCount() : m_facts->meshDevices();
    const auto fitting = fittingChoice(m_catalogue, wanted, devices);
    Q_EMIT edited(settingList(sim::hardwareSettings(before, fitting.value_or(wanted))));
}

bool HardwareSection::isTyped() const
{
    return m_chip->currentText() != m_shown;
}

/// What stands in the line goes to the study; the chip that the study then has is shown in its place.
void HardwareSection::takeTyped()
{
    m_shown = m_chip->currentText();
    m_chipField->setTyped({});
}

void HardwareSection::finishTyping()
{
    if (!isTyped())
        return;
    const QString typed = m_chip->currentText().trimmed();
    if (typed.isEmpty()) {
        takeTyped();
        showChip();
        return;
    }
    const int listed = m_chip->findText(typed, Qt::MatchFixedString);
    const QList<QStandardItem*> completed = m_names->findItems(typed);
    const auto match = m_catalogue.find(typed.toStdString());
    if (listed >= 0)
        chooseChip(m_chip->itemData(listed, kNameRole).toString());
    else if (!completed.isEmpty()) // a row that the arrow keys reached
        chooseChip(completed.front()->data(kNameRole).toString());
    else if (match)
        chooseChip(typed);
    else if (const auto named = sim::namedChoice(m_catalogue, {typed.toStdString()})) {
        takeTyped(); // "v5e-64", "h100x64": the chip and how many
        Q_EMIT edited(settingList(sim::hardwareSettings(choice(), *named)));
    } else {
        const Problem& problem = match.error().front();
        const bool isCommand = problem.fix.find('`') != std::string::npos;
        m_chipField->setTyped(tr("%1. %2").arg(QString::fromStdString(problem.message),
            isCommand ? tr("The list has all chips.") : QString::fromStdString(problem.fix)));
    }
}

QString HardwareSection::topologyProblem(const QString& text) const
{
    const auto sizes = sizesIn(text);
    if (!sizes || sizes->empty())
        return tr("A topology is the number of chips along each axis: 4x2");
    sim::HardwareChoice wanted = choice();
    wanted.topology = *sizes;
    const auto machine = buildMachine(m_catalogue, wanted);
    return machine ? QString() : QString::fromStdString(machine.error().front().message);
}

void HardwareSection::commitTopology(const QString& text)
{
    sim::HardwareChoice wanted = choice();
    wanted.topology = *sizesIn(text);
    if (const auto settings = sim::hardwareSettings(choice(), wanted); !settings.empty())
        Q_EMIT edited(settingList(settings));
    else
        m_topology->setValue(m_topology->value());
}

void HardwareSection::commitSlices()
{
    sim::HardwareChoice wanted = choice();
    wanted.slices = m_slices->value() == 1 ? 0 : m_slices->value(); // one is not said
    Q_EMIT edited(settingList(sim::hardwareSettings(choice(), wanted)));
}

void HardwareSection::commitHosts()
{
    sim::HardwareChoice wanted = choice();
    wanted.hosts = m_hosts->value();
    wanted.perHost = m_perHost->value();
    Q_EMIT edited(settingList(sim::hardwareSettings(choice(), wanted)));
}

bool HardwareSection::focusField(const QString& path)
{
    if (!path.startsWith(QLatin1String("hardware")))
        return false;
    if (path.startsWith(QLatin1String("hardware.chip")) || (!m_topologyField->isVisible() && !m_hostsField->isVisible())) {
        m_chip->setFocus();
        m_chip->lineEdit()->selectAll();
    } else if (m_topologyField->isVisible()) {
        m_topology->setFocus();
    } else {
        (path.endsWith(QLatin1String("per_host")) ? m_perHost : m_hosts)->setFocus();
    }
    return true;
}

} // namespace meshwright::ui

#include "moc_hardware_section.cpp"
