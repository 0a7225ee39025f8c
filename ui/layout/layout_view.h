// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_layout.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

#include <optional>

class QLabel;
class QLineEdit;
class QSortFilterProxyModel;
class QSplitter;

namespace meshwright::ui {

class ArrayModel;
class ArrayTree;
class ElidedLabel;
class PictureArea;
class SliceControls;
class SpecChip;
class SpecEdit;

/// Where the pieces of an array lie: a list of all arrays of the program, the picture of the selected one, and why it lies so.
///
/// The selection's array is shown while the study has it, otherwise the one that was shown before, otherwise the first parameter. A click on a
/// piece selects the devices that hold it; Ctrl adds them, or takes them away.
class LayoutView : public View {
    Q_OBJECT

public:
    explicit LayoutView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;
    QString command() const override;

Q_SIGNALS:
    void specRequested(const QString& path); ///< the user wants to see the spec at this path of the study

protected:
    void forgetStudy() override;
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    QWidget* makeList();
    QWidget* makePicture();
    void showArray(const QString& name);
    void showFacts();
    void showReason();
    void showPiece(const QString& id);
    void showWay();
    void selectRow();
    void shareWidth();
    void filter(const QString& text);
    void clickPiece(const QString& id, Qt::KeyboardModifiers modifiers);
    void redraw();

    const sim::ProgramArray* shown() const; ///< null: none
    /// The picture of what is shown, of about this size. Precondition: shown().
    DisplayList drawn(QSizeF size, bool heading) const;
    LayoutDrawing drawing(QSizeF size, bool heading) const;
    QString platform() const;

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< the last one that has arrays; null: none yet
    QString m_shown;
    Layout m_layout; ///< of the array that is shown
    DeviceColours m_colours{std::vector<DeviceId>{}};
    bool m_isListChanging = false; ///< the list changes by itself: what becomes current in it is not the user's choice

    ArrayModel* m_arrays;
    QSortFilterProxyModel* m_filtered;
    QSplitter* m_splitter; ///< list and picture
    bool m_widthIsUsers = false; ///< the user has moved the splitter
    QLineEdit* m_filter;
    ArrayTree* m_list;
    QLabel* m_stale;
    QLabel* m_name;
    SpecChip* m_chip;
    QLabel* m_zoom;
    QLabel* m_facts;
    SliceControls* m_slices;
    PictureArea* m_area;
    ElidedLabel* m_piece;
    QLabel* m_reason;
    SpecEdit* m_target; ///< the layout that a change is planned to
    QLabel* m_way; ///< what that change takes
};

/// The command that draws this layout: `meshwright show --mesh data=4,model=2 --shape 8192x8192 --spec "P('data', 'model')" --name layers.1.w`.
QString showCommand(const sim::ProgramArray& array, const Mesh& mesh, const QString& platform);

} // namespace meshwright::ui
