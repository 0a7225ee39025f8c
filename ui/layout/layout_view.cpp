// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/layout_view.h"

#include "core/partition/device_program.h"
#include "core/study/stage_share.h"
#include "core/support/text.h"
#include "sim/session/analysis_state.h"
#include "ui/layout/array_model.h"
#include "ui/layout/array_tree.h"
#include "ui/layout/picture_area.h"
#include "ui/layout/reshard_words.h"
#include "ui/layout/slice_controls.h"
#include "ui/layout/spec_chip.h"
#include "ui/study/spec_edit.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/link_colours.h"

#include <QBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QToolButton>

namespace meshwright::ui {

namespace {

constexpr double kSmallestCell = 7.0; ///< pixels of the side of cells that are drawn one by one
constexpr int kLeastList = 276; ///< pixels: names and specs can be read
constexpr double kLargestAspect = 2.0; ///< of a picture that is to fill its room
constexpr std::size_t kMostSheets = 8;
const QSizeF kExportSize(960.0, 640.0);

QString fromText(const std::string& text)
{
    return QString::fromStdString(text);
}

QString roleInWords(Role role)
{
    switch (role) {
    case Role::Parameter:
        return LayoutView::tr("parameter");
    case Role::OptimizerState:
        return LayoutView::tr("optimiser state");
    case Role::Gradient:
        return LayoutView::tr("gradient");
    case Role::Input:
        return LayoutView::tr("input");
    case Role::Metric:
        return LayoutView::tr("metric");
    case Role::Activation:
        break;
    }
    return LayoutView::tr("activation");
}

QToolButton* addButton(QBoxLayout* layout, const QString& text, const QString& tip, QWidget* parent)
{
    auto* button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    button->setAutoRaise(true);
    layout->addWidget(button);
    return button;
}

QLabel* makeText(const QString& accessibleName, QWidget* parent)
{
    auto* label = new QLabel(parent);
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setAccessibleName(accessibleName);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

} // namespace

QString showCommand(const sim::ProgramArray& array, const Mesh& mesh, const QString& platform)
{
    const auto said = toSpecOnCutMesh(array.sharding, mesh);
    if (!said)
        return LayoutView::tr("# no PartitionSpec says %1").arg(fromText(array.spec));
    QStringList words = {QStringLiteral("meshwright"), QStringLiteral("show")};
    const auto add
        = [&](const char* flag, const std::string& value) { words << QString::fromUtf8(flag) << shellQuoted(fromText(value)); };
    add("--mesh", said->mesh.axes().empty() ? "one=1" : said->mesh.text());
    if (!said->mesh.hasDefaultOrder()) {
        std::vector<std::string> order;
        for (const DeviceId device : said->mesh.deviceOrder())
            order.push_back(std::to_string(device));
        add("--device-order", join(order, ","));
    }
    add("--shape", array.type.shape.empty() ? "scalar" : shapeText(array.type.shape));
    add("--spec", specText(said->spec.canonical()));
    if (array.type.dtype != DType::F32)
        add("--dtype", dtypeName(array.type.dtype));
    if (platform != QLatin1String("TPU"))
        add("--platform", platform.toStdString());
    add("--name", array.name);
    if (!isEven(array.sharding, array.type.shape))
        words << QStringLiteral("--pad");
    if (!array.sharding.unreduced.empty())
        words << LayoutView::tr(" # partial sums over %1 are not drawn")
                     .arg(fromText(axesText(array.sharding.unreduced, mesh, ", ")));
    return words.join(QLatin1Char(' '));
}

LayoutView::LayoutView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_arrays(new ArrayModel(this))
    , m_filtered(new QSortFilterProxyModel(this))
    , m_splitter(new QSplitter(this))
{
    m_splitter->addWidget(makeList());
    m_splitter->addWidget(makePicture());
    m_splitter->setStretchFactor(0, 0);
    m_splitter->setStretchFactor(1, 1);
    m_splitter->setChildrenCollapsible(false);
    connect(m_splitter, &QSplitter::splitterMoved, this, [this] { m_widthIsUsers = true; });
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->addWidget(m_splitter);

    connect(&m_selection, &Selection::arrayChanged, this, &LayoutView::showArray);
    connect(&m_selection, &Selection::devicesChanged, this, &LayoutView::redraw);
    connect(m_area, &PictureArea::redrawWanted, this, &LayoutView::redraw);
    connect(m_slices, &SliceControls::changed, this, &LayoutView::redraw);
}

QWidget* LayoutView::makeList()
{
    auto* side = new QWidget(this);
    m_filter = new QLineEdit(side);
    m_filter->setPlaceholderText(tr("Filter arrays"));
    m_filter->setAccessibleName(tr("Filter arrays"));
    m_filter->setToolTip(tr("Part of a name, a spec or a shape (Ctrl+F)"));
    m_filter->setClearButtonEnabled(true);
    connect(m_filter, &QLineEdit::textChanged, this, &LayoutView::filter);
    auto* find = new QShortcut(QKeySequence::Find, this, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
    connect(find, &QShortcut::activated, m_filter, [this] {
        m_filter->setFocus(Qt::ShortcutFocusReason);
        m_filter->selectAll();
    });

    m_filtered->setSourceModel(m_arrays);
    m_filtered->setRecursiveFilteringEnabled(true);
    m_filtered->setAutoAcceptChildRows(true); // "gradients" finds all of them
    m_filtered->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_filtered->setFilterKeyColumn(-1);

    m_list = new ArrayTree(side);
    m_list->setModel(m_filtered);
    m_list->setAccessibleName(tr("Arrays of the program"));
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& current) {
        const sim::ProgramArray* array = m_arrays->arrayAt(m_filtered->mapToSource(current));
        if (array != nullptr && !m_isListChanging)
            m_selection.setArray(fromText(array->name));
    });
    auto* down = new QShortcut(QKeySequence(Qt::Key_Down), m_filter, nullptr, nullptr, Qt::WidgetShortcut);
    connect(down, &QShortcut::activated, m_list, [this] { m_list->setFocus(Qt::TabFocusReason); });

    auto* layout = new QVBoxLayout(side);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addWidget(m_filter);
    layout->addWidget(m_list, 1);
    side->setMinimumWidth(kLeastList);
    return side;
}

QWidget* LayoutView::makePicture()
{
    auto* side = new QWidget(this);
    m_stale = makeText(tr("Why the layout is not up to date"), side);
    m_stale->hide();
    m_name = new QLabel(side);
    m_name->setTextFormat(Qt::PlainText);
    QFont large = m_name->font();
    large.setBold(true);
    large.setPointSizeF(large.pointSizeF() + 2.0);
    m_name->setFont(large);
    m_chip = new SpecChip(side);
    m_facts = makeText(tr("Shape, shards, bytes and copies"), side);
    m_slices = new SliceControls(side);
    m_area = new PictureArea(side);
    m_area->setMinimumSize(160, 120);
    m_piece = new ElidedLabel(side);
    m_piece->setAccessibleName(tr("The piece under the pointer"));
    m_piece->setForegroundRole(QPalette::PlaceholderText);
    m_piece->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_reason = makeText(tr("Why the array is sharded this way"), side);
    m_reason->setTextFormat(Qt::RichText);
    m_reason->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);

    m_target = new SpecEdit(side);
    m_target->setPlaceholderText(tr("P(…): what moves the array into this layout"));
    m_target->setAccessibleName(tr("Layout to reshard to"));
    m_way = makeText(tr("What the reshard moves"), side);
    m_way->hide();
    auto* target = new QLabel(tr("&Reshard to"), side);
    target->setBuddy(m_target);
    connect(m_target, &SpecEdit::problemsChanged, this, &LayoutView::showWay);
    connect(m_target, &QLineEdit::textChanged, this, &LayoutView::showWay);

    auto* title = new QHBoxLayout;
    title->setSpacing(6);
    title->addWidget(m_name);
    title->addWidget(m_chip, 1, Qt::AlignLeft);
    auto* bottom = new QHBoxLayout;
    bottom->setSpacing(6);
    bottom->addWidget(m_piece, 1);
    auto* out = addButton(bottom, QStringLiteral("−"), tr("Zoom out (-)"), side);
    m_zoom = new QLabel(QStringLiteral("100 %"), side);
    m_zoom->setMinimumWidth(m_zoom->fontMetrics().horizontalAdvance(QStringLiteral("1600 %")));
    m_zoom->setAlignment(Qt::AlignCenter);
    bottom->addWidget(m_zoom);
    auto* in = addButton(bottom, QStringLiteral("+"), tr("Zoom in (+, Ctrl+wheel)"), side);
    auto* fit = addButton(bottom, tr("Fit"), tr("Fit the picture (0)"), side);
    connect(out, &QToolButton::clicked, m_area, &PictureArea::zoomOut);
    connect(in, &QToolButton::clicked, m_area, &PictureArea::zoomIn);
    connect(fit, &QToolButton::clicked, m_area, &PictureArea::fit);
    connect(m_area, &PictureArea::zoomChanged, this,
        [this](double zoom) { m_zoom->setText(QStringLiteral("%1 %").arg(qRound(100.0 * zoom))); });
    connect(m_area->view(), &PictureView::hovered, this, &LayoutView::showPiece);
    connect(m_area->view(), &PictureView::clicked, this, &LayoutView::clickPiece);
    connect(m_reason, &QLabel::linkActivated, this, &LayoutView::specRequested);

    auto* layout = new QVBoxLayout(side);
    layout->setContentsMargins(8, 0, 0, 0);
    layout->setSpacing(6);
    layout->addWidget(m_stale);
    layout->addLayout(title);
    layout->addWidget(m_facts);
    layout->addWidget(m_slices);
    layout->addWidget(m_area, 1);
    layout->addLayout(bottom);
    layout->addWidget(m_reason);
    auto* way = new QHBoxLayout;
    way->setSpacing(6);
    way->addWidget(target);
    way->addWidget(m_target, 1);
    layout->addLayout(way);
    layout->addWidget(m_way);
    return side;
}

/// The list gets the room that its columns need, and the picture the rest, at least half.
void LayoutView::shareWidth()
{
    if (m_widthIsUsers)
        return;
    const int list = std::clamp(m_list->wantedWidth(), kLeastList, std::max(kLeastList, width() / 2));
    m_splitter->setSizes({list, std::max(1, width() - list)});
}

void LayoutView::resizeEvent(QResizeEvent* event)
{
    View::resizeEvent(event);
    shareWidth();
}

const sim::ProgramArray* LayoutView::shown() const
{
    return m_analysis ? m_analysis->findArray(m_shown.toStdString()) : nullptr;
}

void LayoutView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    const bool isGood = analysis->built && !analysis->arrays.empty();
    if (analysis->built && !isGood) {
        forgetStudy();
        return m_stale->setText(tr("No value of the program has a name. Program shows all of its values."));
    }
    m_area->view()->setEnabled(isGood);
    m_stale->setVisible(!isGood);
    if (!isGood) {
        const Problem* problem = sim::whyNotBuilt(*analysis);
        const QString why = problem == nullptr ? QString() : fromText(problem->message);
        m_stale->setText(m_analysis ? tr("The study has problems; this is the layout of its last good state. %1").arg(why)
                                    : tr("The study has problems: %1").arg(why));
        return;
    }
    m_analysis = std::move(analysis);
    m_colours = DeviceColours(m_analysis->mesh());
    m_isListChanging = true;
    m_arrays->setAnalysis(m_analysis);
    m_list->expandAll();
    m_list->fitColumns();
    m_isListChanging = false;

    if (m_analysis->findArray(m_selection.array().toStdString()))
        showArray(m_selection.array());
    else if (shown() != nullptr)
        showArray(m_shown);
    else
        m_selection.setArray(fromText(m_analysis->arrays.front().name)); // which shows it
    shareWidth();
}

void LayoutView::forgetStudy()
{
    m_analysis.reset();
    m_shown.clear();
    m_layout = {};
    m_isListChanging = true;
    m_arrays->setAnalysis(std::make_shared<const sim::Analysis>());
    m_isListChanging = false;
    m_name->clear();
    m_chip->setSpec({}, false);
    m_facts->clear();
    m_slices->hide();
    m_area->setPicture({});
    m_piece->setWhole({});
    m_reason->clear();
    m_target->clear();
    m_target->setEnabled(false);
    m_stale->setText(tr("The study is being built…"));
    m_stale->show();
}

void LayoutView::showArray(const QString& name)
{
    const sim::ProgramArray* array = m_analysis ? m_analysis->findArray(name.toStdString()) : nullptr;
    if (array == nullptr)
        return; // a value of the program that has no layout of its own: what is shown stays
    if (m_shown != name)
        m_target->clear();
    m_shown = name;
    m_layout = layoutOf(array->type.shape, array->sharding, m_analysis->mesh());
    m_slices->setLayoutShown(m_layout);
    selectRow();
    showFacts();
    showReason();
    showPiece({});
    StudyArray subject;
    subject.name = array->name;
    subject.shape = array->type.shape;
    m_target->setEnabled(true);
    m_target->setSubject(subject, m_analysis->built->study.mesh);
    showWay();
    redraw();
}

void LayoutView::selectRow()
{
    const QModelIndex row = m_filtered->mapFromSource(m_arrays->indexOf(m_shown));
    if (row == m_list->currentIndex().siblingAtColumn(0))
        return;
    m_isListChanging = true;
    m_list->setCurrentIndex(row);
    m_list->scrollTo(row);
    m_isListChanging = false;
}

void LayoutView::filter(const QString& text)
{
    m_isListChanging = true;
    m_filtered->setFilterFixedString(text);
    m_list->expandAll();
    m_isListChanging = false;
    selectRow();
}

void LayoutView::showFacts()
{
    const sim::ProgramArray& array = *shown();
    m_name->setText(m_shown);
    m_chip->setSpec(fromText(array.spec), !array.sharding.isReplicated());
    const StageShare share = stageShareOf(m_analysis->built->study, array.name, array.type.shape);
    const Shape piece = shardShapeOf(array, *m_analysis);
    const QString bytes = fromText(formatBytes(static_cast<double>(shardBytes(array, *m_analysis))));
    QStringList facts;
    facts << roleInWords(array.role);
    facts << fromText(shapeText(array.type.shape) + " " + dtypeName(array.type.dtype));
    facts << (piece == array.type.shape ? tr("whole on each device, %1").arg(bytes)
                                        : tr("%1 a device, %2").arg(fromText(shapeText(piece)), bytes));
    if (share.layers > 0)
        facts << tr("at most %1 of %2 layers in a stage; drawn before stages").arg(share.layersOfStage).arg(share.layers);
    else if (share.isOfEachStage)
        facts << tr("each stage has that of its layers");
    else if (share.stages > 1)
        facts << tr("1 of %1 devices has it; drawn before stages").arg(share.stages);
    if (share.microbatches > 1)
        facts << tr("of 1 of %1 microbatches at a time; drawn for the whole batch").arg(share.microbatches);
    if (!isEven(array.sharding, array.type.shape))
        facts << tr("uneven: the last pieces are smaller, and padded on the device");
    const std::int64_t parts = shardCount(array.sharding.unreduced);
    const auto copies
        = std::max<std::int64_t>(1, static_cast<std::int64_t>(m_layout.shards.front().devices.size()) / parts / share.stages);
    if (copies > 1)
        facts << (m_layout.shards.size() == 1 && share.layers == 0 ? tr("%1\u00a0copies") : tr("%1\u00a0copies of each shard"))
                     .arg(copies);
    else
        facts << tr("no copies");
    if (parts > 1)
        facts << tr("partial sums over %1: %2 of them make one value")
                     .arg(fromText(axesText(array.sharding.unreduced, m_analysis->mesh(), ", ")))
                     .arg(parts);
    m_facts->setText(facts.join(QStringLiteral("  ·  ")));
}

void LayoutView::showReason()
{
    const sim::ProgramArray& array = *shown();
    QString reason = fromText(m_analysis->reasonOf(array));
    if (const QString known = fromText(array.spec) + QStringLiteral(": "); reason.startsWith(known))
        reason.remove(0, known.size()); // it stands in the chip
    if (!array.annotation.empty())
        reason.remove(QStringLiteral(", by ") + fromText(array.annotation)); // which is named before it
    const QString asked = fromText(array.annotation).toHtmlEscaped();
    QString origin = tr("Follows from others");
    if (asked.startsWith(QLatin1String("sharding.")))
        origin = tr("Asked for at <a href=\"%1\">%1</a>").arg(asked);
    else if (!asked.isEmpty())
        origin = tr("Asked for by %1").arg(asked);
    else if (array.sharding.isReplicated())
        origin = tr("Nothing splits it");
    m_reason->setText(tr("%1: %2.").arg(origin, reason.toHtmlEscaped()));
}

void LayoutView::showPiece(const QString& id)
{
    const DisplayList& picture = m_area->view()->picture();
    const auto item = std::find_if(picture.items.begin(), picture.items.end(),
        [&](const DisplayItem& candidate) { return !id.isEmpty() && candidate.id == id.toStdString(); });
    const QString text = item == picture.items.end()
        ? tr("Click to select devices, Ctrl+click to add more.")
        : fromText(item->tooltip.substr(m_shown.toStdString().size()))
              .remove(QLatin1Char('\n') + fromText(shown()->spec)) // both stand above the picture
              .replace(QLatin1Char('\n'), QStringLiteral("  ·  "));
    m_piece->setWhole(text);
}

void LayoutView::showWay()
{
    const auto spec = parseSpec(m_target->text().trimmed().toStdString());
    const std::vector<SpecProblem>& problems = m_target->problems();
    if (shown() == nullptr || !spec)
        m_way->clear();
    else
        m_way->setText(
            problems.empty() ? reshardWords(*m_analysis, *shown(), *spec) : fromText(problems.front().problem.message));
    m_way->setVisible(!m_way->text().isEmpty());
}

void LayoutView::clickPiece(const QString& id, Qt::KeyboardModifiers modifiers)
{
    if (shown() == nullptr)
        return;
    const std::set<DeviceId> holders = devicesUnder(m_layout, drawing(m_area->wantedSize(), false), id.toStdString());
    if (!(modifiers & Qt::ControlModifier))
        return m_selection.setDevices(holders);
    std::set<DeviceId> devices = m_selection.devices();
    const bool areAllThere = std::includes(devices.begin(), devices.end(), holders.begin(), holders.end());
    for (const DeviceId device : holders) {
        if (areAllThere)
            devices.erase(device);
        else
            devices.insert(device);
    }
    m_selection.setDevices(std::move(devices));
}

QString LayoutView::platform() const
{
    if (!m_analysis->machine)
        return tr("device");
    return QString::fromUtf8(sim::chipClassName(m_analysis->machine->chip.chipClass)).toUpper();
}

LayoutDrawing LayoutView::drawing(QSizeF size, bool heading) const
{
    const sim::ProgramArray& array = *shown();
    const Mesh& mesh = m_analysis->mesh();
    LayoutDrawing drawing;
    drawing.arrayName = array.name;
    drawing.caption = array.spec;
    drawing.heading = heading;
    drawing.platform = platform().toStdString();
    drawing.deviceColours = m_colours;
    drawing.selected = m_selection.devices();
    drawing.partialOver = axesText(array.sharding.unreduced, mesh, ", ");
    drawing.stages = stageShareOf(m_analysis->built->study, array.name, array.type.shape).stages;
    drawing.elementBytes = byteSize(array.type.dtype);
    drawing.cut = m_slices->cut();
    for (const DimSharding& dim : array.sharding.dims)
        drawing.axesOfDims.push_back(axesText(dim.axes, mesh, ", "));
    drawing.largestAspect = kLargestAspect;
    drawing.mostSheets = kMostSheets;
    drawing.mostCellsAcross = static_cast<std::size_t>(std::max(8.0, std::max(size.width(), size.height()) / kSmallestCell));
    return drawing;
}

DisplayList LayoutView::drawn(QSizeF size, bool heading) const
{
    return drawLayoutInto(m_layout, drawing(size, heading), std::max(1.0, size.width()), std::max(1.0, size.height()));
}

void LayoutView::changeEvent(QEvent* event)
{
    View::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        recolourLinks(*m_reason);
}

void LayoutView::showEvent(QShowEvent* event)
{
    View::showEvent(event);
    m_list->scrollTo(m_list->currentIndex()); // what was selected while nobody saw the list
    redraw();
}

void LayoutView::redraw()
{
    if (shown() != nullptr && isVisible())
        m_area->setPicture(drawn(m_area->wantedSize(), false));
}

DisplayList LayoutView::picture() const
{
    return shown() != nullptr ? drawn(kExportSize, true) : DisplayList{};
}

QString LayoutView::command() const
{
    if (shown() == nullptr)
        return QStringLiteral("meshwright show --help");
    return showCommand(*shown(), m_analysis->mesh(), platform());
}

} // namespace meshwright::ui

#include "moc_layout_view.cpp"
