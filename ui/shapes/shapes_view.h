// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/jobs/latest_worker.h"
#include "ui/models/selection.h"
#include "ui/shapes/mesh_shapes.h"
#include "ui/widgets/view.h"

class QLabel;

namespace meshwright::ui {

class PictureView;

/// Every shape that the mesh, or of a pipeline the mesh of a stage, can have on the study's chips, in the colour of its step, filled in while they are simulated. A click makes a shape the
/// study's, or says why it cannot be simulated. A change of anything but the mesh's sizes simulates all shapes again.
class ShapesView : public View {
    Q_OBJECT

public:
    ShapesView(Selection& selection, std::shared_ptr<const sim::Catalogue> catalogue, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright sweep wide_mlp.yaml --vary "mesh={data: 8, model: 1},{data: 4, model: 2}"`.
    QString command() const override;

    const std::vector<MeshShape>& shapes() const { return m_shapes; }
    bool isBusy() const { return m_worker.isBusy(); }

Q_SIGNALS:
    /// The study is to have this mesh: `path=value` each.
    void meshChosen(const QStringList& settings);

protected:
    void forgetStudy() override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void start();
    void take(std::size_t index, MeshShape shape);
    void showState();
    void drawShapes();
    QString whyNone() const;
    int current() const; ///< the study's own shape; -1: it is none of these

    std::shared_ptr<const sim::Catalogue> m_catalogue; ///< shared: the worker may outlive whoever else has it
    std::shared_ptr<const sim::Analysis> m_analysis;
    std::vector<MeshShape> m_shapes;
    QString m_refused; ///< why the shape that was clicked last cannot be used; empty when it can
    QLabel* m_status;
    PictureView* m_picture;
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
