// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/mesh_section.h"

#include "core/study/axis_edits.h"
#include "core/study/legal_sizes.h"
#include "ui/models/selection.h"
#include "ui/study/legal_spin_box.h"
#include "ui/study/tone_label.h"
#include "ui/study/value_edit.h"

#include <QGridLayout>
#include <QPushButton>
#include <QSlider>
#include <QToolButton>

namespace meshwright::ui {

namespace {

QString sizesText(const std::vector<MeshAxis>& mesh)
{
    QStringList sizes;
    for (const MeshAxis& axis : mesh)
        sizes << QString::number(axis.size);
    return sizes.join(QLatin1Char('x'));
}

QString devicesText(std::int64_t count)
{
    return count == 1 ? MeshSection::tr("1 device") : MeshSection::tr("%1 devices").arg(count);
}

/// Where a mesh stands in a list; -1 when it is none of it.
int positionOf(const std::vector<std::vector<MeshAxis>>& meshes, const std::vector<MeshAxis>& mesh)
{
    const auto found = std::find(meshes.begin(), meshes.end(), mesh);
    return found == meshes.end() ? -1 : static_cast<int>(found - meshes.begin());
}

} // namespace

/// One axis: its name, its size, and a button that removes it.
class AxisRow : public QWidget {
    Q_OBJECT

public:
    explicit AxisRow(Selection& selection)
        : m_selection(selection)
        , m_name(new ValueEdit)
        , m_size(new LegalSpinBox)
        , m_remove(new QToolButton)
        , m_note(new ToneLabel(ColourRole::Error))
    {
        m_remove->setText(QStringLiteral("×"));
        m_remove->setAutoRaise(true);
        m_note->hide();
        m_size->setMinimumWidth(m_size->fontMetrics().horizontalAdvance(QStringLiteral("000000")) + 40);
        auto* grid = new QGridLayout(this);
        grid->setContentsMargins(0, 0, 0, 0);
        grid->setHorizontalSpacing(6);
        grid->setVerticalSpacing(2);
        grid->setColumnStretch(0, 1);
        grid->addWidget(m_name, 0, 0);
        grid->addWidget(m_size, 0, 1);
        grid->addWidget(m_remove, 0, 2);
        grid->addWidget(m_note, 1, 0, 1, 3);

        m_name->setCheck([this](const QString& text) {
            return m_facts ? QString::fromStdString(axisNameProblem(m_facts->shown, text.trimmed().toStdString())) : QString();
        });
        m_size->setCheck([this](int size) { return verdict(size); });
        connect(m_name, &ValueEdit::problemChanged, this, &AxisRow::showNote);
        connect(m_size, &LegalSpinBox::problemChanged, this, &AxisRow::showNote);
        connect(m_name, &ValueEdit::committed, this, [this](const QString& name) {
            Q_EMIT edited(settingList(renameAxisSettings(m_facts->study, m_axis.name, name.trimmed().toStdString())));
        });
        connect(m_size, &LegalSpinBox::committed, this, [this](int size) {
            const QString path = QString::fromStdString(m_facts->meshPath + "." + m_axis.name);
            Q_EMIT edited({setting(path, QString::number(size))});
        });
        connect(m_remove, &QToolButton::clicked, this,
            [this] { Q_EMIT edited(settingList(removeAxisSettings(m_facts->study, m_axis.name))); });
    }

    void show(const std::shared_ptr<const StudyFacts>& facts, const MeshAxis& axis)
    {
        m_facts = facts;
        m_axis = axis;
        const QString name = QString::fromStdString(axis.name);
        m_name->setValue(name);
        m_name->setAccessibleName(tr("Name of axis %1").arg(name));
        m_size->setAccessibleName(tr("Size of axis %1").arg(name));
        m_remove->setAccessibleName(tr("Remove axis %1").arg(name));
        m_remove->setToolTip(tr("Remove axis %1 from the mesh and all specs").arg(name));
        m_size->setLegal(facts->sizesAreSound ? legalAxisSizes(facts->shown, axis.name, facts->hardwareDevices())
                                              : std::vector<std::int64_t>{1});
        m_size->setDocumentValue(static_cast<int>(std::clamp<std::int64_t>(axis.size, 1, kLargestMesh)));
        setEnabled(facts->readable);
    }
    using QWidget::show;

    const std::string& axis() const { return m_axis.name; }
    void focusSize()
    {
        m_size->setFocus();
        m_size->selectAll();
    }
    void focusName()
    {
        m_name->setFocus();
        m_name->selectAll();
    }

Q_SIGNALS:
    void edited(const QStringList& settings);

protected:
    void enterEvent(QEnterEvent*) override { m_selection.setHoveredAxis(QString::fromStdString(m_axis.name)); }
    void leaveEvent(QEvent*) override { m_selection.setHoveredAxis({}); }

private:
    /// A size that does not cut evenly is refused; one that the hardware does not have is a matter of what is changed first.
    LegalSpinBox::Verdict verdict(int size) const
    {
        if (!m_facts || !m_facts->sizesAreSound)
            return {};
        const auto why = [&](std::int64_t devices) { return whyNotAxisSize(m_facts->shown, m_axis.name, size, devices); };
        return {QString::fromStdString(why(m_facts->hardwareDevices())), why(0).empty()};
    }

    void showNote(const QString& problem) { m_note->setNote(problem, ColourRole::Error); }

    Selection& m_selection;
    std::shared_ptr<const StudyFacts> m_facts;
    MeshAxis m_axis;
    ValueEdit* m_name;
    LegalSpinBox* m_size;
    QToolButton* m_remove;
    ToneLabel* m_note;
};

MeshSection::MeshSection(Selection& selection, QWidget* parent)
    : Section(tr("Mesh"), parent)
    , m_selection(selection)
    , m_axes(new QVBoxLayout)
    , m_add(new QPushButton(tr("Add axis")))
    , m_sliderBox(new QWidget)
    , m_first(new ToneLabel(ColourRole::MutedText))
    , m_last(new ToneLabel(ColourRole::MutedText))
    , m_slider(new QSlider(Qt::Horizontal))
    , m_product(new ToneLabel(ColourRole::Text))
    , m_fix(new QPushButton)
    , m_note(new ToneLabel(ColourRole::Error))
{
    m_axes->setSpacing(6);
    m_note->hide();
    m_fix->hide();
    m_slider->setAccessibleName(tr("Mesh"));
    m_slider->setTickPosition(QSlider::TicksBelow);
    m_slider->setTickInterval(1);
    m_slider->setPageStep(1);
    keepWheelForFocus(m_slider);
    for (QLabel* end : {m_first, m_last})
        end->setWordWrap(false);

    auto* line = new QHBoxLayout(m_sliderBox);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(6);
    line->addWidget(m_first);
    line->addWidget(m_slider, 1);
    line->addWidget(m_last);

    auto* product = new QHBoxLayout;
    product->setSpacing(6);
    product->addWidget(m_product, 1);
    product->addWidget(m_fix);
    auto* add = new QHBoxLayout;
    add->addWidget(m_add);
    add->addStretch(1);
    body().addLayout(m_axes);
    body().addLayout(add);
    body().addWidget(m_sliderBox);
    body().addLayout(product);
    body().addWidget(m_note);

    connect(m_add, &QPushButton::clicked, this, &MeshSection::addAxis);
    connect(m_slider, &QSlider::valueChanged, this, &MeshSection::moveTo);
    connect(m_fix, &QPushButton::clicked, this, [this] {
        if (const auto mesh = nearestMesh(m_facts->shown, m_facts->hardwareDevices()))
            Q_EMIT edited(toMesh(*mesh));
    });
}

void MeshSection::show(const std::shared_ptr<const StudyFacts>& facts)
{
    m_facts = facts;
    setHeading(facts->study.phases.empty() ? tr("Mesh") : tr("Mesh of the first of %1 phases").arg(facts->study.phases.size()));
    showAxes();
    showSlider();
    showProduct();
    m_add->setEnabled(facts->readable);
}

void MeshSection::showAxes()
{
    const std::vector<MeshAxis>& axes = m_facts->shown.mesh;
    while (m_rows.size() > axes.size()) {
        m_rows.back()->hide();
        m_rows.back()->deleteLater(); // it may be what asked for this
        m_axes->removeWidget(m_rows.back());
        m_rows.pop_back();
    }
    while (m_rows.size() < axes.size()) {
        auto* row = new AxisRow(m_selection);
        connect(row, &AxisRow::edited, this, &Section::edited);
        m_rows.push_back(row);
        m_axes->addWidget(row);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        m_rows[i]->show(m_facts, axes[i]);
        if (!m_added.isEmpty() && m_added.toStdString() == axes[i].name) {
            m_added.clear();
            m_rows[i]->focusName();
        }
    }
    const Problem* problem = m_facts->findProblem(m_facts->meshPath);
    const bool known = problem != nullptr && problem->id != "MW1430"; // the line of the product says that
    const bool isWarning = known && problem->severity != Severity::Error;
    m_note->setNote(
        known ? QString::fromStdString(problem->message) : QString(), isWarning ? ColourRole::Warning : ColourRole::Error);
}

void MeshSection::showSlider()
{
    const std::int64_t devices = m_facts->hardwareDevices() > 0 ? m_facts->hardwareDevices() : m_facts->meshDevices();
    m_meshes = m_facts->sizesAreSound ? meshFactorisations(m_facts->shown, devices) : std::vector<std::vector<MeshAxis>>{};
    m_sliderBox->setVisible(m_meshes.size() > 1);
    if (m_meshes.size() < 2)
        return;
    m_first->setText(sizesText(m_meshes.front()));
    m_last->setText(sizesText(m_meshes.back()));
    int position = positionOf(m_meshes, m_facts->shown.mesh);
    if (position < 0) {
        const auto nearest = nearestMesh(m_facts->shown, devices);
        position = nearest ? positionOf(m_meshes, *nearest) : 0;
    }
    const QSignalBlocker quiet(m_slider);
    m_slider->setRange(0, static_cast<int>(m_meshes.size()) - 1);
    if (!m_slider->isSliderDown())
        m_slider->setValue(position);
    m_slider->setAccessibleDescription(sizesText(m_facts->shown.mesh));
    m_slider->setToolTip(tr("All meshes of %1 that divide every array evenly").arg(devicesText(devices)));
}

void MeshSection::showProduct()
{
    const std::int64_t devices = m_facts->meshDevices();
    const std::int64_t hardware = m_facts->hardwareDevices();
    const QString mesh = sizesText(m_facts->shown.mesh);
    const QString sizes = m_facts->shown.mesh.size() > 1 ? tr("%1: ").arg(mesh) : QString();
    m_fix->hide();
    if (hardware == 0) {
        m_product->setNote(sizes + devicesText(devices), ColourRole::Text);
        return;
    }
    const std::int64_t perChip = m_facts->machine->chip.devicesPerChip;
    const std::int64_t chips = hardware / std::max<std::int64_t>(1, perChip);
    const QString has = perChip > 1 ? tr("%1 chips (%2 each)").arg(chips).arg(perChip)
        : chips == 1                ? tr("1 chip")
                                    : tr("%1 chips").arg(chips);
    if (devices == hardware) {
        m_product->setNote(tr("%1%2 of %3").arg(sizes, devicesText(devices), has), ColourRole::Text);
        return;
    }
    m_product->setNote(devices > hardware
            ? tr("%1%2, but the hardware has %3").arg(sizes, devicesText(devices), has)
            : tr("%1%2 of %3: %4 left idle").arg(sizes, devicesText(devices), has).arg(hardware - devices),
        ColourRole::Error);
    const auto right = m_facts->sizesAreSound ? nearestMesh(m_facts->shown, hardware) : std::nullopt;
    m_fix->setVisible(right.has_value());
    if (right) {
        m_fix->setText(tr("Use %1").arg(sizesText(*right)));
        m_fix->setAccessibleName(tr("Use the mesh %1").arg(sizesText(*right)));
    }
}

QStringList MeshSection::toMesh(const std::vector<MeshAxis>& mesh) const
{
    QStringList settings = settingList(meshSettings(m_facts->shown.mesh, mesh, m_facts->meshPath));
    const auto order = static_cast<std::int64_t>(m_facts->shown.deviceOrder.size());
    if (order != 0 && order != m_facts->hardwareDevices()) { // it would list too many or too few
        const std::string inside = m_facts->meshPath + ".device_order";
        const std::string beside = m_facts->meshPath == "mesh" ? "device_order" : "phases[0].device_order";
        settings << setting(QString::fromStdString(m_facts->study.places.at.contains(inside) ? inside : beside), {});
    }
    return settings;
}

void MeshSection::moveTo(int index)
{
    if (index < 0 || index >= static_cast<int>(m_meshes.size()))
        return;
    const QStringList settings = toMesh(m_meshes[static_cast<std::size_t>(index)]);
    if (!settings.isEmpty())
        Q_EMIT edited(settings);
}

/// With a name that is free; the name can be typed over at once.
void MeshSection::addAxis()
{
    std::string name;
    for (const char* candidate : {"data", "model", "fsdp", "tensor", "pipe", "context", "expert"}) {
        if (name.empty() && axisNameProblem(m_facts->shown, candidate).empty())
            name = candidate;
    }
    for (int number = 1; name.empty(); ++number) {
        if (axisNameProblem(m_facts->shown, fmt::format("axis{}", number)).empty())
            name = fmt::format("axis{}", number);
    }
    m_added = QString::fromStdString(name);
    Q_EMIT edited({setting(QString::fromStdString(m_facts->meshPath + "." + name), QStringLiteral("1"))});
}

bool MeshSection::focusField(const QString& path)
{
    if (!m_facts || !path.startsWith(QString::fromStdString(m_facts->meshPath)))
        return false;
    for (AxisRow* row : m_rows) {
        if (path.endsWith(QLatin1Char('.') + QString::fromStdString(row->axis()))) {
            row->focusSize();
            return true;
        }
    }
    if (m_rows.empty())
        m_add->setFocus();
    else
        m_rows.front()->focusSize();
    return true;
}

} // namespace meshwright::ui

#include "mesh_section.moc"

#include "moc_mesh_section.cpp"
