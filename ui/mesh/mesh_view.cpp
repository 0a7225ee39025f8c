// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/mesh/mesh_view.h"

#include "core/support/text.h"
#include "sim/report/machine_picture.h"
#include "sim/session/analysis_state.h"
#include "ui/mesh/axis_bar.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/picture_view.h"

#include <QBoxLayout>
#include <QEvent>
#include <QLabel>
#include <QScrollArea>
#include <QStackedLayout>

namespace meshwright::ui {

namespace {

const QString kDevice = QStringLiteral("device:");
const QString kBlock = QStringLiteral("block:");
const QString kAxis = QStringLiteral("axis:");
const QString kSlice = QStringLiteral("slice:");

/// A figure with where it comes from, and what the catalogue notes about it.
struct FigureText {
    QString text;
    QString note;
};

FigureText figureText(const QString& name, const QString& value, const sim::OptionalFigure& figure)
{
    if (!figure)
        return {MeshView::tr("%1: %2 (assumed)").arg(name, value), {}};
    return {MeshView::tr("%1: %2 (%3)").arg(name, value, QString::fromStdString(figure->source)),
        QString::fromStdString(figure->note)};
}

QString bandwidth(const sim::OptionalFigure& figure, double otherwise)
{
    return QString::fromStdString(bandwidthText(figure ? figure->value : otherwise));
}

/// What each kind of link can do and where that is known from, a line each.
std::vector<FigureText> linkFigures(const sim::Machine& machine)
{
    const sim::Interconnect& net = machine.chip.interconnect;
    std::vector<FigureText> lines;
    for (const sim::PhysicalAxis& axis : machine.topology.axes()) {
        const QString kind = QString::fromUtf8(sim::linkKindName(axis.link.kind));
        const bool isNamed
            = std::any_of(lines.begin(), lines.end(), [&](const FigureText& line) { return line.text.startsWith(kind); });
        if (axis.length == 1 || isNamed)
            continue;
        const double rate = axis.link.bytesPerSecond;
        const QString latency = QString::fromStdString(formatSeconds(axis.link.latencySeconds));
        switch (axis.link.kind) {
        case sim::LinkKind::Ici:
            lines.push_back(figureText(MeshView::tr("%1 link of a chip, each way").arg(kind),
                bandwidth(net.linkBytesPerSecond, rate), net.linkBytesPerSecond));
            lines.push_back(figureText(MeshView::tr("%1 hop").arg(kind), latency, net.hopLatencySeconds));
            break;
        case sim::LinkKind::OnChip:
            lines.push_back(figureText(
                MeshView::tr("%1 link").arg(kind), bandwidth(net.onChipLinkBytesPerSecond, rate), net.onChipLinkBytesPerSecond));
            break;
        case sim::LinkKind::NvLink:
        case sim::LinkKind::Pcie:
        case sim::LinkKind::PeerLink: {
            const sim::OptionalFigure& figure = net.totalBytesPerSecond ? net.totalBytesPerSecond : net.linkBytesPerSecond;
            lines.push_back(figureText(MeshView::tr("%1 of a GPU, each way").arg(kind), bandwidth(figure, rate), figure));
            if (net.achievableFraction)
                lines.push_back(figureText(MeshView::tr("%1, share that collectives reach").arg(kind),
                    QString::number(net.achievableFraction->value, 'g', 3), net.achievableFraction));
            lines.push_back(figureText(MeshView::tr("%1 step").arg(kind), latency, net.hopLatencySeconds));
            break;
        }
        case sim::LinkKind::Nic:
            lines.push_back(figureText((machine.chip.chipClass == sim::ChipClass::Gpu ? MeshView::tr("%1 of a GPU, each way")
                                                                                      : MeshView::tr("%1 of a chip, each way"))
                                           .arg(kind),
                bandwidth(machine.chip.nicBytesPerSecond, rate), machine.chip.nicBytesPerSecond));
            lines.push_back(figureText(MeshView::tr("%1 step").arg(kind), latency, machine.chip.networkLatencySeconds));
            break;
        }
    }
    for (const std::string& assumption : machine.assumptions)
        lines.push_back({MeshView::tr("Assumed: %1").arg(QString::fromStdString(assumption)), {}});
    return lines;
}

/// Why there is no mesh on a machine: the first error, or that there is no hardware.
QString reasonOf(const sim::Analysis& analysis)
{
    if (const Problem* why = sim::whyNotBuilt(analysis))
        return QString::fromStdString(why->message);
    if (analysis.study && !analysis.study->hardware)
        return MeshView::tr("The study has no hardware: choose a chip, and how many there are.");
    return MeshView::tr("The study has no machine.");
}

/// The slice to be drawn: the one that is drawn where something in it is selected, or nothing anywhere, else that of the first selected device.
std::int64_t sliceWith(const std::set<DeviceId>& selected, const TopologyDrawing& drawing)
{
    const auto network = std::ranges::find(drawing.dimensions, DimensionKind::Network, &DrawnDimension::kind);
    const bool hasSlices = network != drawing.dimensions.end()
        && std::ranges::find(drawing.dimensions, DimensionKind::Torus, &DrawnDimension::kind) != drawing.dimensions.end();
    if (!hasSlices)
        return 0;
    const auto dimension = static_cast<std::size_t>(network - drawing.dimensions.begin());
    std::optional<std::int64_t> first;
    for (const DrawnDevice& device : drawing.devices) {
        if (!selected.contains(device.id))
            continue;
        const std::int64_t slice = device.coordinates[dimension];
        if (slice == drawing.slice)
            return slice;
        first = first.value_or(slice);
    }
    return first.value_or(drawing.slice);
}

QString joined(const std::vector<std::int64_t>& numbers, QChar separator)
{
    QStringList texts;
    for (const std::int64_t number : numbers)
        texts << QString::number(number);
    return texts.join(separator);
}

} // namespace

MeshView::MeshView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_pages(new QStackedLayout(this))
    , m_empty(new QLabel(tr("Open a study or an example\nto see its machine and its mesh."), this))
    , m_title(new ElidedLabel(this))
    , m_notice(new Notice(this))
    , m_axes(new AxisBar(this))
    , m_scroll(new QScrollArea(this))
    , m_picture(new PictureView)
    , m_details(new QLabel(this))
{
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    QFont bold = font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_scroll->setWidget(m_picture);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    m_scroll->setMinimumSize(240, 140);
    m_scroll->installEventFilter(this);
    m_details->setTextFormat(Qt::PlainText);
    m_details->setWordWrap(true);
    m_details->setForegroundRole(QPalette::PlaceholderText);
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_details->setAccessibleName(tr("Figures of the links and their sources"));

    auto* page = new QWidget(this);
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_title);
    layout->addWidget(m_notice);
    layout->addWidget(m_axes);
    layout->addWidget(m_scroll, 1);
    layout->addWidget(m_details);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);

    connect(m_axes, &AxisBar::attended, this, &MeshView::attend);
    connect(m_axes, &AxisBar::left, this, [this] { attend({}); });
    connect(m_picture, &PictureView::hovered, this,
        [this](const QString& id) { attend(id.startsWith(kAxis) ? id.mid(kAxis.size()) : QString()); });
    connect(m_picture, &PictureView::clicked, this, &MeshView::onClicked);
    const auto redrawIfSeen = [this] {
        if (isVisible())
            redraw();
    };
    connect(&m_selection, &Selection::hoveredAxisChanged, this, redrawIfSeen);
    connect(&m_selection, &Selection::devicesChanged, this, [this, redrawIfSeen] {
        m_drawing.slice = sliceWith(m_selection.devices(), m_drawing);
        redrawIfSeen();
    });
}

void MeshView::showEvent(QShowEvent* event)
{
    View::showEvent(event);
    redraw();
}

void MeshView::forgetStudy()
{
    m_analysis.reset();
    m_hasMesh = false;
    m_drawing = {};
    m_empty->setText(tr("The study is being simulated…"));
    m_pages->setCurrentIndex(0);
}

void MeshView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    const bool isComplete = analysis->machine && analysis->placement;
    if (isComplete || (analysis->machine && !m_hasMesh)) {
        m_analysis = std::move(analysis);
        showMachine(*m_analysis);
    } else if (!m_analysis) {
        m_empty->setText(reasonOf(*analysis));
    } else {
        setNotice(tr("Not up to date: %1").arg(reasonOf(*analysis)), true);
    }
}

void MeshView::showMachine(const sim::Analysis& analysis)
{
    m_hasMesh = analysis.placement != nullptr;
    auto drawing = sim::machinePicture(*analysis.machine, analysis.placement.get());
    if (!drawing) {
        m_drawing = {};
        m_empty->setText(QString::fromStdString(drawing.error().front().message));
        m_pages->setCurrentIndex(0);
        return;
    }
    const std::int64_t shown = m_drawing.slice;
    m_drawing = *std::move(drawing);
    m_drawing.slice = shown < m_analysis->machine->choice.slices ? shown : 0;
    m_drawing.slice = sliceWith(m_selection.devices(), m_drawing);
    m_pages->setCurrentIndex(1);
    m_title->setWhole(QString::fromStdString(
        m_hasMesh ? fmt::format("{}: mesh {}", m_drawing.title, analysis.placement->mesh().text()) : m_drawing.title));
    QStringList figures;
    QStringList notes;
    for (const FigureText& figure : linkFigures(*analysis.machine)) {
        figures << figure.text;
        if (!figure.note.isEmpty())
            notes << figure.text.section(QLatin1Char(':'), 0, 0) + QLatin1String(": ") + figure.note;
    }
    m_details->setText(figures.join(QLatin1Char('\n')));
    m_details->setToolTip(notes.join(QLatin1Char('\n')));
    m_axes->setAxes(m_drawing.meshAxes);
    setNotice(m_hasMesh ? QString() : tr("Without its mesh: %1").arg(reasonOf(analysis)), false);
    redraw();
}

void MeshView::setNotice(const QString& reason, bool isStale)
{
    m_notice->show(reason);
    m_axes->setEnabled(!isStale);
    m_picture->setEnabled(!isStale);
}

void MeshView::redraw()
{
    m_axes->setLit(m_selection.hoveredAxis());
    if (m_drawing.dimensions.empty())
        return;
    const QSize room = m_scroll->maximumViewportSize();
    m_drawing.hoveredAxis = m_selection.hoveredAxis().toStdString();
    m_drawing.selected = m_selection.devices();
    m_drawing.caption = false;
    m_drawing.legend = false;
    m_drawing.width = std::max(200, room.width());
    m_drawing.height = std::max(120, room.height());
    m_picture->setPicture(drawTopology(m_drawing));
}

/// The pointer or the keyboard is on an axis; on none: the card with the focus keeps its own.
void MeshView::attend(const QString& axis)
{
    m_selection.setHoveredAxis(axis.isEmpty() ? m_axes->focusedAxis() : axis);
}

void MeshView::onClicked(const QString& id, Qt::KeyboardModifiers modifiers)
{
    if (id.startsWith(kSlice)) {
        m_drawing.slice = id.mid(kSlice.size()).toLongLong();
        return redraw();
    }
    const QString& prefix = id.startsWith(kBlock) ? kBlock : kDevice;
    if (!id.startsWith(prefix)) {
        if (id.isEmpty())
            m_selection.setDevices({});
        return;
    }
    const DeviceId device = id.mid(prefix.size()).toLongLong();
    std::set<DeviceId> devices;
    if (modifiers & Qt::ControlModifier)
        devices = m_selection.devices();
    if (devices.erase(device) == 0)
        devices.insert(device);
    m_selection.setDevices(std::move(devices));
}

bool MeshView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_scroll && event->type() == QEvent::Resize)
        redraw();
    return View::eventFilter(watched, event);
}

DisplayList MeshView::picture() const
{
    if (m_drawing.dimensions.empty())
        return {320.0, 60.0, "No machine", ColourRole::Background, {{TextShape{{16.0, 30.0}, "no machine", 12.0}}}};
    TopologyDrawing drawing = m_drawing;
    drawing.caption = true;
    drawing.legend = true;
    return drawTopology(drawing);
}

QString MeshView::command() const
{
    if (!m_analysis)
        return QStringLiteral("meshwright list hardware");
    const sim::HardwareChoice& choice = m_analysis->machine->choice;
    QString text = QStringLiteral("meshwright mesh --hw ") + shellQuoted(QString::fromStdString(choice.chip));
    if (!choice.topology.empty())
        text += QStringLiteral(" --topology ") + joined(choice.topology, QLatin1Char('x'));
    if (choice.hosts > 0)
        text += QStringLiteral(" --hosts %1 --per-host %2").arg(choice.hosts).arg(choice.perHost);
    if (!m_hasMesh)
        return text;
    const Mesh& mesh = m_analysis->placement->mesh();
    if (!mesh.axes().empty())
        text += QStringLiteral(" --mesh ") + shellQuoted(QString::fromStdString(mesh.text()));
    if (!mesh.hasDefaultOrder())
        text += QStringLiteral(" --device-order ") + joined(mesh.deviceOrder(), QLatin1Char(','));
    return text;
}

} // namespace meshwright::ui

#include "moc_mesh_view.cpp"
