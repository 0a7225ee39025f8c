// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/training_checkpoint.h"
#include "ui/jobs/latest_worker.h"
#include "ui/widgets/view.h"

#include <memory>
#include <optional>

class QLabel;
class QPushButton;

namespace meshwright::ui {

class ElidedLabel;
class Notice;
class Table;

/// A checkpoint beside the study that is to go on from it: what each host and each device of the study's mesh reads, of which files. Another mesh or
/// spec of the study is another answer. Without a study the checkpoint's arrays are listed. Nothing is written before `Write a copy`.
class CheckpointView : public View {
    Q_OBJECT

public:
    explicit CheckpointView(QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright reshard --from checkpoints --to study.yaml --dry-run`.
    QString command() const override;

    /// A checkpoint, or a folder of them: then its newest complete one.
    void openCheckpoint(const QString& path);
    bool isOpened() const { return !m_path.isEmpty(); }

    bool isBusy() const { return m_worker.isBusy(); }

protected:
    void forgetStudy() override;

private:
    /// What the study reads of the checkpoint.
    struct Restored {
        QString path; ///< of the checkpoint itself
        Checkpoint checkpoint;
        std::string mesh; ///< to which
        std::vector<RestoreShare> shares;
        Problems problems; ///< then there is nothing else
    };

    void work();
    void writeCopy();
    void showRestored();
    void addArrays();
    void addHost(const QString& name, std::span<const RestoreShare* const> shares);

    std::shared_ptr<const sim::Analysis> m_analysis; ///< null: none that can be built
    QString m_path; ///< as it was opened; empty: nothing was
    std::optional<Restored> m_restored;
    QPushButton* m_open;
    QPushButton* m_write;
    ElidedLabel* m_name;
    QLabel* m_status;
    Notice* m_notice;
    Table* m_table;
    QLabel* m_empty; ///< in the place of the table
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
