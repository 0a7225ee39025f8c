// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/training/checkpoint_view.h"

#include "core/sharding/shardy_text.h"
#include "core/support/text.h"
#include "sim/session/engine.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QFileDialog>
#include <QLabel>
#include <QPushButton>

#include <functional>
#include <map>
#include <set>

namespace meshwright::ui {

namespace {

constexpr std::size_t kMostOpen = 64; ///< devices of hosts whose rows are seen at once

QString fromWords(const std::string& words)
{
    return QString::fromStdString(words);
}

QString bytesText(std::int64_t bytes)
{
    return fromWords(formatBytes(static_cast<double>(bytes)));
}

std::int64_t bytesOf(const RestoreShare& share)
{
    std::int64_t sum = 0;
    for (const ReadFromFile& file : share.files)
        sum += file.bytes;
    return sum;
}

/// The host of each device, where the machine's hosts are numbered; nothing where devices stand in no host that is known.
std::function<std::optional<std::int64_t>(DeviceId)> hostsOf(const sim::Analysis& analysis, std::size_t devices)
{
    if (analysis.machine && analysis.machine->deviceCount() >= static_cast<std::int64_t>(devices)) {
        const sim::Topology& topology = analysis.machine->topology;
        for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
            if (topology.axes()[axis].kind == sim::AxisKind::Network)
                return [&topology, axis](DeviceId device) { return std::optional(topology.coordinate(device, axis)); };
        }
    }
    return [](DeviceId) { return std::optional<std::int64_t>(); };
}

/// Of many, which are of one kind mostly, the first few.
QString firstProblems(const Problems& problems)
{
    constexpr std::size_t kMost = 4;
    QString text = fromWords(
        describe(Problems(problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, problems.size())))));
    if (problems.size() > kMost)
        text += CheckpointView::tr("\nand %1 more").arg(problems.size() - kMost);
    return text;
}

} // namespace

CheckpointView::CheckpointView(QWidget* parent)
    : View(parent)
    , m_open(new QPushButton(tr("&Open a checkpoint…"), this))
    , m_write(new QPushButton(tr("&Write a copy…"), this))
    , m_name(new ElidedLabel(this))
    , m_status(new QLabel(this))
    , m_notice(new Notice(this))
    , m_table(new Table({tr("Reads"), tr("Files"), tr("Ranges"), tr("Bytes")}, tr("What each host and device reads"), this))
    , m_empty(new QLabel(tr("Open a checkpoint to see what each host and each device of the study's mesh reads from it"), this))
{
    m_open->setToolTip(tr("A checkpoint, or a folder of checkpoints: the newest complete one is taken"));
    m_write->setToolTip(tr("Writes the checkpoint in the layout of the study to another folder"));
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("What is read"));
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    auto* controls = new QHBoxLayout;
    controls->addWidget(m_open);
    controls->addWidget(m_name, 1);
    controls->addWidget(m_write);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addLayout(controls);
    layout->addWidget(m_status);
    layout->addWidget(m_notice);
    layout->addWidget(m_table, 1);
    layout->addWidget(m_empty, 1);
    layout->addStretch();
    connect(m_open, &QPushButton::clicked, this, [this] {
        const QString path = QFileDialog::getExistingDirectory(this, tr("Checkpoint, or folder of checkpoints"), m_path);
        if (!path.isEmpty())
            openCheckpoint(path);
    });
    connect(m_write, &QPushButton::clicked, this, &CheckpointView::writeCopy);
    setFocusProxy(m_open);
    showRestored();
}

void CheckpointView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    if (!analysis->built)
        return; // what was shown of the study before stays
    m_analysis = std::move(analysis);
    work();
}

void CheckpointView::forgetStudy()
{
    m_analysis.reset();
    m_restored.reset();
    work();
}

void CheckpointView::openCheckpoint(const QString& path)
{
    m_path = path;
    m_restored.reset();
    work();
}

/// Off the UI thread: the phases of a study are built again, and files are read.
void CheckpointView::work()
{
    if (m_path.isEmpty())
        return showRestored();
    const auto study = m_analysis ? m_analysis->study : nullptr;
    m_worker.start([this, path = m_path, study](const std::stop_token& stop) -> std::function<void()> {
        Restored restored;
        const auto plan = [&]() -> Result<std::vector<RestoreShare>> {
            const auto reader = CheckpointReader::open(path.toStdString());
            if (!reader)
                return reader.error();
            restored.path = fromWords((*reader)->path().string());
            restored.checkpoint = (*reader)->checkpoint();
            if (!study)
                return std::vector<RestoreShare>();
            const auto phases = sim::trainingPhases(*study);
            if (!phases)
                return phases.error();
            restored.mesh = wholeMesh(phases->front()).text();
            return restorePlan(**reader, phases->front());
        };
        if (auto shares = plan())
            restored.shares = *std::move(shares);
        else
            restored.problems = shares.error();
        if (stop.stop_requested())
            return nullptr;
        return [this, restored = std::move(restored)]() mutable {
            m_restored = std::move(restored);
            showRestored();
        };
    });
    showRestored();
}

void CheckpointView::writeCopy()
{
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder for the new checkpoint"));
    if (folder.isEmpty())
        return;
    m_worker.start(
        [this, folder, path = m_restored->path, study = m_analysis->study](const std::stop_token&) -> std::function<void()> {
            const auto reader = CheckpointReader::open(path.toStdString());
            const auto phases = sim::trainingPhases(*study);
            const auto written = !reader ? Result<std::filesystem::path>(reader.error())
                : !phases                ? Result<std::filesystem::path>(phases.error())
                                         : convertCheckpoint(**reader, phases->front(), folder.toStdString());
            return [this, written] {
                if (written)
                    m_notice->show(tr("Written: %1").arg(fromWords(written->string())), Notice::Level::Plain);
                else
                    m_notice->show(fromWords(describe(written.error())), Notice::Level::Error);
                m_write->setEnabled(true);
            };
        });
    m_write->setEnabled(false);
}

void CheckpointView::showRestored()
{
    m_name->setWhole(m_path.isEmpty() ? tr("No checkpoint is open") : m_path);
    m_table->clear();
    const bool isShown = m_restored && m_restored->problems.empty();
    const bool isRead = isShown && !m_restored->shares.empty();
    m_write->setEnabled(isRead);
    m_table->setHeaderLabels(isShown && !isRead ? QStringList{tr("Array"), tr("Type"), tr("Layout"), tr("Bytes")}
                                                : QStringList{tr("Reads"), tr("Files"), tr("Ranges"), tr("Bytes")});
    m_table->setVisible(isShown);
    m_empty->setVisible(m_path.isEmpty());
    m_notice->show(m_restored ? firstProblems(m_restored->problems) : QString(), Notice::Level::Error);
    if (!isShown) {
        m_status->setText(m_path.isEmpty() ? tr("See what a training on another mesh reads from a checkpoint.")
                : !m_restored              ? tr("Reading…")
                : m_analysis               ? tr("This study cannot go on from the checkpoint.")
                                           : tr("This checkpoint cannot be read."));
        return;
    }
    const Checkpoint& checkpoint = m_restored->checkpoint;
    std::int64_t stored = 0;
    for (const CheckpointArray& array : checkpoint.arrays)
        stored += array.type.bytes();
    if (!isRead) {
        m_status->setText(tr("Step %1 of a training with %2 on %3: %4 in %5 files. Open the study that is to go on from it.")
                              .arg(checkpoint.state.step)
                              .arg(fromWords(checkpoint.state.optimizer), fromWords(checkpoint.state.mesh), bytesText(stored))
                              .arg(checkpoint.files.size()));
        addArrays();
        return;
    }
    std::map<std::optional<std::int64_t>, std::vector<const RestoreShare*>> hosts;
    const auto hostOf = hostsOf(*m_analysis, m_restored->shares.size());
    std::int64_t read = 0;
    for (const RestoreShare& share : m_restored->shares) {
        hosts[hostOf(share.device)].push_back(&share);
        read += bytesOf(share);
    }
    m_status->setText(tr("Step %1, written on %2; read by %3. The checkpoint has %4 in %5 files; all devices together read %6.")
                          .arg(checkpoint.state.step)
                          .arg(fromWords(checkpoint.state.mesh), fromWords(m_restored->mesh), bytesText(stored))
                          .arg(checkpoint.files.size())
                          .arg(bytesText(read)));
    for (const auto& [host, shares] : hosts)
        addHost(host ? tr("host %1").arg(*host) : tr("all devices"), shares);
    m_table->fitColumns();
}

void CheckpointView::addArrays()
{
    const auto mesh = parseMesh(m_restored->checkpoint.state.mesh);
    for (const CheckpointArray& array : m_restored->checkpoint.arrays) {
        const auto sharding = mesh ? parseShardy(array.sharding, *mesh) : Result<TensorSharding>(mesh.error());
        const std::string layout = sharding ? layoutText(*sharding, *mesh) : array.sharding;
        auto* row = new QTreeWidgetItem(
            m_table, {fromWords(array.name), fromWords(typeText(array.type)), fromWords(layout), bytesText(array.type.bytes())});
        for (int column = 1; column < m_table->columnCount(); ++column)
            row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
    m_table->fitColumns();
}

/// A host reads what its devices read, each for itself: what two of them hold is read twice.
void CheckpointView::addHost(const QString& name, std::span<const RestoreShare* const> shares)
{
    std::set<std::size_t> files;
    std::int64_t ranges = 0;
    std::int64_t bytes = 0;
    QTreeWidgetItem* group = m_table->addGroup({name});
    for (const RestoreShare* share : shares) {
        std::int64_t ownRanges = 0;
        QStringList names;
        for (const ReadFromFile& file : share->files) {
            files.insert(file.file);
            ownRanges += file.ranges;
            names << tr("%1: %2").arg(fromWords(m_restored->checkpoint.files[file.file].name), bytesText(file.bytes));
        }
        ranges += ownRanges;
        bytes += bytesOf(*share);
        auto* item = new QTreeWidgetItem(group,
            {tr("device %1").arg(share->device), QString::number(share->files.size()), QString::number(ownRanges),
                bytesText(bytesOf(*share))});
        item->setToolTip(0, names.join(QLatin1Char('\n')));
        for (int column = 1; column < m_table->columnCount(); ++column)
            item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
    group->setText(1, QString::number(files.size()));
    group->setText(2, QString::number(ranges));
    group->setText(3, bytesText(bytes));
    group->setExpanded(m_restored->shares.size() <= kMostOpen);
}

DisplayList CheckpointView::picture() const
{
    return tablePicture(*m_table, "checkpoint", "no checkpoint is open");
}

QString CheckpointView::command() const
{
    return QStringLiteral("meshwright reshard --from %1 --to %2 --dry-run")
        .arg(m_path.isEmpty() ? QStringLiteral("checkpoints") : shellQuoted(m_path),
            studyArguments(m_analysis ? m_analysis->source : sim::StudySource{}));
}

} // namespace meshwright::ui

#include "moc_checkpoint_view.cpp"
