// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shapes/shapes_view.h"

#include "core/study/axis_edits.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "ui/widgets/picture_view.h"

#include <QBoxLayout>
#include <QLabel>

namespace meshwright::ui {

ShapesView::ShapesView(Selection&, std::shared_ptr<const sim::Catalogue> catalogue, QWidget* parent)
    : View(parent)
    , m_catalogue(std::move(catalogue))
    , m_status(new QLabel(this))
    , m_picture(new PictureView)
{
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("Progress of the shapes"));
    m_picture->setAccessibleName(tr("Shapes of the mesh by step time"));
    m_picture->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
    m_picture->setMinimumSize(320, 200);
    m_picture->installEventFilter(this);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_status);
    layout->addWidget(m_picture, 1);
    connect(m_picture, &PictureView::clicked, this, [this](const QString& id) {
        if (!id.startsWith(QLatin1String("shape:")))
            return;
        const MeshShape& shape = m_shapes[static_cast<std::size_t>(id.mid(6).toInt())];
        if (!shape.why.empty()) {
            m_refused = tr(" %1 cannot be simulated: %2.")
                            .arg(QString::fromStdString(shapeWords(shape.axes)), QString::fromStdString(shape.why));
            return showState();
        }
        QStringList settings;
        for (const MeshAxis& axis : shape.axes)
            settings << QStringLiteral("mesh.%1=%2").arg(QString::fromStdString(axis.name)).arg(axis.size);
        Q_EMIT meshChosen(settings);
    });
}

/// A mesh that is one of the shapes changes nothing but which one is framed.
void ShapesView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    const std::vector<MeshShape> shapes = shapesOf(*m_analysis);
    const bool areSame = !shapes.empty() && shapes.size() == m_shapes.size()
        && std::equal(shapes.begin(), shapes.end(), m_shapes.begin(),
            [](const MeshShape& a, const MeshShape& b) { return a.source == b.source; });
    if (!areSame && (!shapes.empty() || m_shapes.empty() || m_analysis->study)) {
        m_shapes = shapes;
        start();
    }
    m_refused.clear();
    showState();
    drawShapes();
}

void ShapesView::forgetStudy()
{
    m_worker.cancel();
    m_analysis.reset();
    m_shapes.clear();
    m_refused.clear();
    m_status->setText(tr("The study is being built…"));
    drawShapes();
}

void ShapesView::start()
{
    if (!isVisible() || std::all_of(m_shapes.begin(), m_shapes.end(), [](const MeshShape& shape) { return shape.isKnown; }))
        return m_worker.cancel();
    m_worker.start([this, shapes = m_shapes](const std::stop_token& stop) mutable -> std::function<void()> {
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            if (shapes[i].isKnown)
                continue;
            if (!analyseShape(shapes[i], *m_catalogue, stop))
                return nullptr;
            m_worker.post([this, i, shape = shapes[i]] { take(i, shape); });
        }
        return [] {}; // all were taken
    });
}

void ShapesView::take(std::size_t index, MeshShape shape)
{
    m_shapes[index] = std::move(shape);
    showState();
    drawShapes();
}

void ShapesView::showState()
{
    const auto known = std::count_if(m_shapes.begin(), m_shapes.end(), [](const MeshShape& shape) { return shape.isKnown; });
    const MeshShape* best = nullptr;
    for (const MeshShape& shape : m_shapes) {
        if (shape.seconds > 0.0 && shape.fits && (best == nullptr || shape.seconds < best->seconds))
            best = &shape;
    }
    if (m_shapes.empty())
        return m_status->setText(whyNone());
    const auto impossible
        = std::count_if(m_shapes.begin(), m_shapes.end(), [](const MeshShape& shape) { return !shape.why.empty(); });
    const QString shapes = QString::fromStdString(counted(static_cast<std::int64_t>(m_shapes.size()), "shape"));
    QString text
        = known < static_cast<std::ptrdiff_t>(m_shapes.size()) ? tr("%1 of %2 looked at").arg(known).arg(shapes) : shapes;
    text += impossible > 0 ? tr("; crossed out: %1 that cannot be simulated.").arg(impossible) : QStringLiteral(".");
    if (best != nullptr)
        text += tr(" The fastest that fits: %1, %2. Blue is fast, red is slow, hatched does not fit. Click a shape to use it.")
                    .arg(QString::fromStdString(shapeWords(best->axes)), QString::fromStdString(formatSeconds(best->seconds)));
    if (const Study* study = m_analysis ? m_analysis->study.get() : nullptr;
        study && shapedAxes(*study).size() < study->mesh.size())
        text += tr(" %1=%2 are the pipeline's stages: the shapes are of the mesh inside a stage.")
                    .arg(QString::fromStdString(study->pipeline.axis))
                    .arg(study->pipeline.stages);
    if (m_shapes.size() == 1 && m_shapes.front().axes.size() == 1)
        text += tr(" With another axis, which Study adds, the mesh has more shapes.");
    m_status->setText(text + m_refused);
}

/// Why there are no shapes.
QString ShapesView::whyNone() const
{
    const Study* study = m_analysis ? m_analysis->study.get() : nullptr;
    if (study == nullptr || study->mesh.empty())
        return tr("The mesh has no axes: add one to see what shapes it can have.");
    if (shapedAxes(*study).empty())
        return tr("%1 is the only axis, and is as long as the pipeline has stages: add an axis to see the shapes inside a stage.")
            .arg(QString::fromStdString(study->pipeline.axis));
    return tr("%1 devices are not divisible by %2 stages: change the hardware or the stages.")
        .arg(m_analysis->machine ? m_analysis->machine->deviceCount() : devicesIn(study->mesh))
        .arg(study->pipeline.stages);
}

int ShapesView::current() const
{
    if (!m_analysis || !m_analysis->study)
        return -1;
    const auto found = std::find_if(m_shapes.begin(), m_shapes.end(),
        [axes = shapedAxes(*m_analysis->study)](const MeshShape& shape) { return shape.axes == axes; });
    return found == m_shapes.end() ? -1 : static_cast<int>(found - m_shapes.begin());
}

void ShapesView::drawShapes()
{
    if (isVisible())
        m_picture->setPicture(
            shapesPicture(m_shapes, current(), std::max(320, m_picture->width()), std::max(200, m_picture->height())));
}

void ShapesView::showEvent(QShowEvent* event)
{
    View::showEvent(event);
    start(); // what was left when the view was hidden
    drawShapes();
}

/// A hidden view costs nothing.
void ShapesView::hideEvent(QHideEvent* event)
{
    View::hideEvent(event);
    m_worker.cancel();
}

/// The picture fills the room that it gets.
bool ShapesView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_picture && event->type() == QEvent::Resize)
        drawShapes();
    return View::eventFilter(watched, event);
}

DisplayList ShapesView::picture() const
{
    return shapesPicture(m_shapes, current(), 760.0, 460.0);
}

QString ShapesView::command() const
{
    const sim::StudySource source = m_analysis ? m_analysis->source : sim::StudySource{};
    const Study* read = m_analysis ? m_analysis->study.get() : nullptr;
    std::vector<std::string> meshes;
    for (std::size_t i = 0; read != nullptr && i < m_shapes.size(); ++i) { // the shapes outlive an edit that cannot be read
        std::vector<MeshAxis> mesh = read->mesh;
        for (const MeshAxis& axis : m_shapes[i].axes)
            std::ranges::find(mesh, axis.name, &MeshAxis::name)->size = axis.size;
        meshes.push_back(meshValue(mesh, {}));
    }
    const QString study = QStringLiteral("meshwright sweep ") + studyArguments(source);
    return meshes.empty() ? study
                          : study + QStringLiteral(" --vary ") + shellQuoted(QString::fromStdString("mesh=" + join(meshes, ",")));
}

} // namespace meshwright::ui

#include "moc_shapes_view.cpp"
