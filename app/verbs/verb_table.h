// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/terminal/output.h"
#include "core/support/result.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace meshwright::cli {

struct FaultFlags;

/// A file or folder that a verb writes. Whether it can be is asked before the verb does its work.
struct WrittenFile {
    enum class Kind { Result, Beside, Folder }; ///< in place of standard output; a file of its own; a folder of files
    std::string flag;
    const std::string* path = nullptr; ///< empty: not asked for
    Kind kind = Kind::Result;
};

/// A flag that says nothing without another one.
struct Follower {
    const CLI::Option* option = nullptr;
    const CLI::Option* leader = nullptr;
};

/// A flag that takes one of a few words.
struct Choice {
    const char* flag = nullptr;
    const std::string* value = nullptr;
    std::vector<std::string> allowed;
};

/// One verb of the command line. What its flags write to must live as long as `run`: options are shared with it.
struct Verb {
    CLI::App* app = nullptr;
    std::vector<Format> formats; ///< the first is the default
    std::function<int(Output&)> run;
    std::vector<CLI::Option*> needed = {}; ///< options and arguments that it cannot do without
    std::vector<WrittenFile> files = {};
    std::vector<Follower> followers = {};
    std::vector<Choice> choices = {};

    CLI::Option* addFile(
        const char* names, std::string& target, const char* description, WrittenFile::Kind kind, const char* type = "FILE");
};

/// The flags that all verbs have, as typed.
struct CommonFlags {
    std::string format = {}; ///< empty: the verb's first
    std::string colour = "auto";
    bool quiet = false;
    bool verifyPasses = false;
};

/// The verbs, in the order of the help.
class VerbTable {
public:
    explicit VerbTable(CLI::App& app)
        : m_app(app)
    {
    }

    /// A verb with the common flags; references to it stay good.
    Verb& add(const char* name, const char* description, const char* examples, std::vector<Format> formats,
        std::function<int(Output&)> run);

    const std::deque<Verb>& verbs() const { return m_verbs; }
    const Verb* find(const std::string& name) const; ///< null: there is none
    std::vector<std::string> names() const;
    const CommonFlags& common() const { return m_common; }
    bool isFormatGiven() const { return !m_common.format.empty(); }

private:
    CLI::App& m_app;
    std::deque<Verb> m_verbs;
    CommonFlags m_common;
};

// The verbs, each with its flags and its examples: layout_verbs.cpp, program_verbs.cpp, study_verbs.cpp, other_verbs.cpp.
void addShow(VerbTable& table);
void addMesh(VerbTable& table);
void addTrain(VerbTable& table);
void addSimulate(VerbTable& table);
void addSearch(VerbTable& table);
void addPlan(VerbTable& table);
void addSweep(VerbTable& table);
void addDiff(VerbTable& table);
void addReport(VerbTable& table);
void addExport(VerbTable& table);
void addGui(VerbTable& table);
void addRun(VerbTable& table);
void addLesson(VerbTable& table);
void addOpen(VerbTable& table);
void addCheck(VerbTable& table);
void addConvert(VerbTable& table);
void addReshard(VerbTable& table);
void addPropagate(VerbTable& table);
void addPartition(VerbTable& table);
void addProve(VerbTable& table);
void addExplain(VerbTable& table);
void addList(VerbTable& table);
void addTour(VerbTable& table);
void addCalibrate(VerbTable& table);
void addValidate(VerbTable& table);
void addConfig(VerbTable& table);
void addDoctor(VerbTable& table);

// Flags that several verbs have.

/// --hw and --mesh: settings of the study, or of a program in its place. Those of --set come after them.
void addHardware(CLI::App& app, std::vector<std::string>& settings);
void addMesh(CLI::App& app, std::vector<std::string>& settings);

/// --stack: a setting of the study.
void addStack(CLI::App& app, std::vector<std::string>& settings);

/// --no-prove.
void addNoProve(CLI::App& app, bool& proves);

/// `--set path=value`, any number of times.
void addSettings(CLI::App& app, std::vector<std::string>& settings);
void addDeviceMemory(CLI::App& app, std::int64_t& bytes);

/// An option of bytes, written 512MiB.
void addBytes(CLI::App& app, const char* flag, std::int64_t& bytes, const char* description);
void addFaultFlags(CLI::App& app, FaultFlags& faults);

/// `--engine`, what virtual devices are.
void addEngine(CLI::App& app, std::string& engine);

inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 62;

/// Takes whole numbers of a range; says so in our words, where CLI11 would speak of conversions.
std::function<std::string(const std::string&)> wholeNumber(std::int64_t least, std::int64_t most = kMostCounted);

/// Takes numbers; their range is the verb's to judge.
std::string anyNumber(const std::string& text);

} // namespace meshwright::cli
