// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_topology.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

class QLabel;
class QScrollArea;
class QStackedLayout;

namespace meshwright::ui {

class AxisBar;
class ElidedLabel;
class Notice;
class PictureView;

/// The physical machine with the mesh axes on it.
///
/// An axis that the pointer or the keyboard is on, here or in another view, lights up its links. A click on a device selects it in all views,
/// Ctrl adds it or takes it away. Without a mesh that fits, the last machine with its mesh stays, greyed, under a line that says why; a machine
/// that never had one is drawn alone.
class MeshView : public View {
    Q_OBJECT

public:
    explicit MeshView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright mesh --hw v5e --topology 4x2 --mesh data=4,model=2`.
    QString command() const override;

protected:
    void forgetStudy() override;
    void showEvent(QShowEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void showMachine(const sim::Analysis& analysis);
    void setNotice(const QString& reason, bool isStale);
    void redraw();
    void attend(const QString& axis);
    void onClicked(const QString& id, Qt::KeyboardModifiers modifiers);

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< the one that is shown; null: none yet
    bool m_hasMesh = false; ///< it is shown with its mesh
    TopologyDrawing m_drawing;
    QStackedLayout* m_pages;
    QLabel* m_empty;
    ElidedLabel* m_title;
    Notice* m_notice;
    AxisBar* m_axes;
    QScrollArea* m_scroll;
    PictureView* m_picture;
    QLabel* m_details;
};

} // namespace meshwright::ui
