// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/session/session.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::ui {

/// What becomes of a file in the window.
enum class OpenAs : std::uint8_t {
    Study, ///< it is edited, and saved to
    Program, ///< the study that simulates it, which has no file yet
    Model, ///< a study with this model, which has no file yet
    Launch, ///< the study of the training that it starts, which has no file yet
    Report, ///< its pages are shown, with the study inside it
    Result, ///< the study is compared with it
    Messages, ///< it is explained
    Page, ///< its cells are run
    Trace, ///< its slices are shown below the study's
    Checkpoint, ///< what the study reads of it is shown
};

/// The beginning of a file, by which it is told what it is.
struct FileStart {
    std::string path;
    std::string_view text; ///< its first kStartBytes at most
};
inline constexpr std::size_t kStartBytes = std::size_t{64} << 10;

/// One kind of file that can be opened. A reader that core or sim gains is one row of `openers`.
struct Opener {
    const char* what; ///< "a study (YAML)"
    const char* endings; ///< for the file dialog: "*.yaml *.yml"
    bool (*isOne)(const FileStart& file);
    OpenAs as;
};

/// All kinds, the more telling ones first: the first that recognises a file opens it.
const std::vector<Opener>& openers();

/// "a study (YAML), …": what can be opened.
QString whatCanBeOpened();

/// What a file, or a folder of checkpoints, is by its content.
/// Problems: those of reading it; MW1830 it is none of what can be opened: the message says what it is, where that is known.
Result<OpenAs> recognised(const QString& path);

/// The same of a text that has no file.
Result<OpenAs> recognised(const FileStart& file);

/// Of a file that is made for such a text: ".mlir".
QString endingOf(OpenAs as);

/// A study with the model of a config.json on eight H100, fully sharded: where one begins. It stands beside the config and is in no file; the config is
/// never written. Precondition: `recognised` says Model.
sim::StudySource studyOfModel(const QString& configPath);

/// The study of the training that a launch line starts (`studySourceOf` of sim/session), on as many H100 as it starts processes, or v5p for MaxText on TPUs:
/// a line does not say its chips. Where its degrees do not go into those, on the fewest times as many into which they do. What of it is taken for what, and what is not read, stands above it.
/// Problems: those of `readFile`, `defaultCatalogue` and `studySourceOf`.
Result<sim::StudySource> studyOfLaunch(const QString& path);

} // namespace meshwright::ui
