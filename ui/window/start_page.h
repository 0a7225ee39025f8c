// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

class QGridLayout;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace meshwright::ui {

/// What the program opens with: the example studies, recent files, and the way to a file of one's own.
class StartPage : public QWidget {
    Q_OBJECT

public:
    /// Shows the example studies (*.yaml) of a folder; the one to begin with comes first.
    /// `modelsFolder` has the models to plan (*.json) whose configuration is known.
    StartPage(const QString& examplesFolder, const QString& modelsFolder, QWidget* parent = nullptr);

    /// Offers the way back to the study of this title; an empty one: there is none.
    void setOpenStudy(const QString& title);

    void setRecentFiles(const QStringList& paths);

    /// The paths of the examples, in the order shown.
    const QStringList& examples() const { return m_examples; }

Q_SIGNALS:
    void exampleChosen(const QString& path);
    void fileChosen(const QString& path);
    void openRequested();
    void pagesRequested(); ///< pages and lessons
    void planRequested(const QString& configPath); ///< a plan for the model of a config.json
    void clustersRequested(); ///< models and clusters beside each other, by time and cost
    void explainRequested();
    void backRequested();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void arrange();

    QStringList m_examples;
    QList<QWidget*> m_doorCards; ///< ways to begin
    QList<QWidget*> m_cards; ///< of examples
    QPushButton* m_back;
    QGridLayout* m_doors;
    QGridLayout* m_grid;
    QVBoxLayout* m_recent;
    QLabel* m_recentHeading;
    int m_columns = 0;
};

} // namespace meshwright::ui
