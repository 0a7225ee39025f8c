// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_line.h"

#include "core/study/document.h"
#include "core/study/program_study.h"
#include "core/support/checked.h"
#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/plan/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>

namespace {

[[noreturn]] void throwNotToml()
{
    throw std::logic_error("not TOML");
}

} // namespace

// Some invalid texts break an assert of toml++: here that throws, in every build.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? void() : throwNotToml())
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace meshwright::sim {

namespace {

using Words = std::span<const ShellWord>;

/// The framework that a word of a command starts; empty: none.
std::string frameworkOf(const std::string& word)
{
    const std::string name = lowerCase(word.substr(word.rfind('/') + 1));
    const std::string path = lowerCase(word);
    if (name.starts_with("pretrain_") && name.ends_with(".py"))
        return "megatron";
    if (path.starts_with("torchtitan.") || path.find("torchtitan/train.py") != std::string::npos || name == "run_train.sh")
        return "torchtitan";
    const bool isMaxText = path.find("maxtext") != std::string::npos;
    if (isMaxText
        && (path.ends_with("train") || path.ends_with("train.py") || path.ends_with("train_compile")
            || path.ends_with("train_compile.py")))
        return "maxtext";
    return {};
}

/// Adds a word, apart where a variable or a string has several.
void addWords(const ShellWord& word, std::vector<ShellWord>& words)
{
    if (!word.isKnown) {
        words.push_back(word);
        return;
    }
    std::istringstream parts(word.text);
    for (std::string part; parts >> part;) {
        if (part != "\\") // the end of a line in a string
            words.push_back({part, word.line});
    }
}

/// A launcher that does not say what it launches.
bool isOtherLauncher(const std::string& word)
{
    return word == "accelerate" || word == "deepspeed" || word == "torchrun";
}

/// Where a command starts a training.
struct Start {
    std::vector<ShellWord> words;
    std::size_t at = 0; ///< the word that does
};

/// The trainings that a script starts: its commands, but those that only print; where none does, what its variables have as commands, which others run.
std::vector<Start> startsOf(const ShellScript& script)
{
    std::vector<Start> starts;
    const auto add = [&](std::vector<ShellWord> words) {
        const auto found
            = std::ranges::find_if(words, [](const ShellWord& word) { return word.isKnown && !frameworkOf(word.text).empty(); });
        if (found != words.end()) {
            const auto at = static_cast<std::size_t>(found - words.begin());
            starts.push_back({std::move(words), at});
        }
    };
    for (const auto& command : script.commands) {
        std::vector<ShellWord> words;
        for (const ShellWord& word : command)
            addWords(word, words);
        if (command.front().text != "echo" && command.front().text != "printf")
            add(std::move(words));
    }
    for (auto variable = script.variables.begin(); starts.empty() && variable != script.variables.end(); ++variable) {
        std::vector<ShellWord> words;
        addWords({variable->second}, words);
        if (words.size() > 1)
            add(std::move(words));
    }
    return starts;
}

/// It is run, and not only named in a message ("pretrain_gpt.py FAILED").
bool isCommand(const Start& start)
{
    return std::ranges::any_of(start.words, [](const ShellWord& word) {
        return word.text.starts_with('-') || word.text.starts_with("python") || word.text.ends_with("run_train.sh")
            || word.text.find('=') != std::string::npos;
    });
}

/// A command of another launcher, where there is one.
std::optional<ShellWord> otherLauncherOf(const ShellScript& script)
{
    for (const auto& command : script.commands) {
        const auto found = std::ranges::find_if(command, [](const ShellWord& word) { return isOtherLauncher(word.text); });
        if (std::any_of(
                found, command.end(), [](const ShellWord& word) { return word.text == "-m" || word.text.ends_with(".py"); }))
            return *found;
    }
    return std::nullopt;
}

/// A number that stands behind one of these options of a launcher, with an equals sign or without.
std::optional<std::int64_t> numberBehind(Words words, std::initializer_list<std::string_view> names)
{
    std::optional<std::int64_t> found;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string name = words[i].text;
        std::string value = i + 1 < words.size() ? words[i + 1].text : std::string();
        if (const std::size_t equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        }
        std::replace(name.begin(), name.end(), '_', '-');
        if (std::find(names.begin(), names.end(), name) != names.end())
            found = parseInteger(value);
    }
    return found;
}

/// What the launcher before the program starts: torchrun's hosts times processes, MPI's or Slurm's tasks.
std::optional<std::int64_t> devicesOf(Words launcher, const ShellScript& script)
{
    const auto variable = [&](const char* name) {
        const auto found = script.variables.find(name);
        return found == script.variables.end() ? std::nullopt : parseInteger(found->second);
    };
    const auto hosts = numberBehind(launcher, {"--nnodes", "--num-nodes"});
    if (const auto perHost = numberBehind(launcher, {"--nproc-per-node", "--num-gpus"}))
        return checkedMultiply(hosts.value_or(1), *perHost);
    if (const auto tasks = numberBehind(launcher, {"-np", "-n", "--np", "--ntasks"}))
        return tasks;
    const auto perNode = variable("SLURM_NTASKS_PER_NODE");
    if (const auto nodes = variable("SLURM_NNODES"); nodes && perNode)
        return checkedMultiply(*nodes, *perNode);
    return variable("SLURM_NTASKS");
}

/// `--name value`, `--name=value`, `--name`. What is not known is a value where one follows, else it goes to `unknown`.
std::vector<LaunchOption> dashedOptions(Words words, std::vector<std::string>& unknown)
{
    std::vector<LaunchOption> options;
    bool takesValue = false;
    for (const ShellWord& word : words) {
        const int line = static_cast<int>(word.line);
        if (!word.isKnown) {
            if (!takesValue || !options.back().value.empty() || word.text.find('@') != std::string::npos)
                unknown.push_back(word.text);
            else
                options.back().isKnown = false;
            takesValue = false;
        } else if (word.text.starts_with("--")) {
            const std::size_t equals = word.text.find('=');
            const bool hasValue = equals != std::string::npos;
            options.push_back({word.text.substr(2, hasValue ? equals - 2 : std::string::npos),
                hasValue ? word.text.substr(equals + 1) : "", line});
            takesValue = !hasValue;
        } else if (const std::size_t colon = word.text.find(':'); word.text.starts_with("activation-checkpoint:")) {
            options.push_back({word.text.substr(0, colon), word.text.substr(colon + 1), line}); // a subcommand, as tyro has them
            takesValue = false;
        } else if (takesValue) {
            options.back().value += (options.back().value.empty() ? "" : " ") + word.text;
        }
    }
    return options;
}

std::vector<LaunchOption> assignedOptions(Words words, std::vector<std::string>& unknown)
{
    std::vector<LaunchOption> options;
    for (const ShellWord& word : words) {
        const std::size_t equals = word.text.find('=');
        if (!word.isKnown)
            unknown.push_back(word.text);
        else if (equals != std::string::npos && equals > 0 && !word.text.starts_with('-'))
            options.push_back({word.text.substr(0, equals), word.text.substr(equals + 1), static_cast<int>(word.line)});
    }
    return options;
}

/// MaxText's settings come from a file, which base.yml is beneath, then from variables `M_NAME`, then from the line. A file other than base.yml is read
/// from beside the script.
Result<std::vector<LaunchOption>> maxTextOptions(
    const std::string& file, Words words, const ShellScript& script, std::vector<std::string>& unknown)
{
    std::vector<LaunchOption> options;
    const auto config = std::ranges::find_if(words, [](const ShellWord& word) {
        return word.isKnown && word.text.find('=') == std::string::npos
            && (word.text.ends_with(".yml") || word.text.ends_with(".yaml"));
    });
    if (config != words.end() && !config->text.ends_with("base.yml")) {
        const std::filesystem::path path = std::filesystem::path(file).parent_path() / config->text;
        const auto text = readFile(path);
        if (!text)
            return Problem{"MW1494", fmt::format("the settings in {} are not here", config->text),
                "put the file where the script names it from, or its settings on the line",
                Place{file, static_cast<int>(config->line), 1, {}}};
        const Document document = parseDocument(*text, path.string());
        if (!document.readable)
            return document.problems;
        for (const DocEntry& entry : document.root.entries) {
            if (entry.value.kind == DocNode::Kind::Scalar && entry.key != "base_config")
                options.push_back({entry.key, entry.value.text, 0});
        }
    }
    for (const auto& [name, value] : script.variables) {
        if (name.starts_with("M_"))
            options.push_back({lowerCase(name.substr(2)), value, 0});
    }
    std::vector<LaunchOption> line = assignedOptions(words, unknown);
    options.insert(options.end(), std::make_move_iterator(line.begin()), std::make_move_iterator(line.end()));
    return options;
}

std::string valueText(const toml::node& node)
{
    if (const auto* text = node.as_string())
        return text->get();
    if (const auto* flag = node.as_boolean())
        return flag->get() ? "true" : "false";
    if (const auto* list = node.as_array()) {
        std::vector<std::string> parts;
        for (const toml::node& part : *list)
            parts.push_back(valueText(part));
        return join(parts, " ");
    }
    if (const auto* whole = node.as_integer())
        return std::to_string(whole->get());
    if (const auto* number = node.as_floating_point())
        return fmt::format("{}", number->get());
    return {};
}

void addTable(const toml::table& table, const std::string& prefix, std::vector<LaunchOption>& options)
{
    for (const auto& [key, node] : table) {
        const std::string name = prefix + std::string(key.str());
        if (const auto* inner = node.as_table())
            addTable(*inner, name + ".", options);
        else
            options.push_back({name, valueText(node), static_cast<int>(node.source().begin.line)});
    }
}

Result<std::vector<LaunchOption>> tomlOptions(const std::string& file, std::string_view text)
{
    std::string plain(text); // no option has other letters, which toml++ is not safe with outside of quotes
    std::ranges::replace_if(
        plain, [](char letter) { return static_cast<unsigned char>(letter) > 0x7F; }, '?');
    try {
        std::vector<LaunchOption> options;
        addTable(toml::parse(plain), "", options);
        return options;
    } catch (const std::logic_error&) {
        return Problem{"MW1495", "not TOML", "correct what is neither `name = value` nor `[table]`", Place{file}};
    } catch (const toml::parse_error& error) {
        return Problem{"MW1495", fmt::format("not TOML: {}", error.description()), "correct the line",
            Place{file, static_cast<int>(error.source().begin.line), static_cast<int>(error.source().begin.column), {}}};
    }
}

/// The product of MaxText's axes, where none takes what is left inside of slices.
std::optional<std::int64_t> axesProduct(const std::vector<LaunchOption>& options)
{
    std::map<std::string, std::int64_t> sizes;
    for (const LaunchOption& option : options) {
        if (option.name.ends_with("_parallelism"))
            sizes[option.name] = parseInteger(option.value).value_or(0);
    }
    if (!sizes.contains("ici_fsdp_parallelism")) // -1 by default
        return std::nullopt;
    std::optional<std::int64_t> product = 1;
    for (const auto& [name, size] : sizes) {
        if (size > 0 && product)
            product = checkedMultiply(*product, size);
        else if (name.starts_with("ici"))
            return std::nullopt;
    }
    return product;
}

/// The last option of this name; empty: none.
std::string lastValue(const std::vector<LaunchOption>& options, std::string_view name)
{
    const auto found
        = std::find_if(options.rbegin(), options.rend(), [&](const LaunchOption& option) { return option.name == name; });
    return found == options.rend() ? std::string() : found->value;
}

/// What a configuration of torchtitan's registry sets, by its options; of one that is not known nothing.
/// Source: pytorch/torchtitan, torchtitan/models/{llama3,deepseek_v3}/config_registry.py (August 2026).
std::vector<LaunchOption> registeredOptions(std::string_view config)
{
    struct Registered {
        const char* config;
        std::int64_t context;
        std::int64_t sequences; ///< of a microbatch
        const char* checkpoint;
        std::int64_t tensor;
        std::int64_t expert;
        const char* schedule;
        const char* converters;
        std::int64_t lossChunks;
    };
    static constexpr std::array kConfigs = {Registered{"llama3_8b", 8192, 1, "selective", 1, 1, "1F1B", "", 8},
        Registered{"llama3_70b", 8192, 8, "full", 8, 1, "1F1B", "", 8},
        Registered{"llama3_405b", 8192, 2, "full", 8, 1, "1F1B", "float8", 8},
        Registered{"deepseek_v3_16b", 4096, 4, "selective", 1, 8, "Interleaved1F1B", "", 8},
        Registered{"deepseek_v3_671b", 4096, 4, "selective", 1, 2, "Interleaved1F1B", "", 8}};
    const auto found = std::ranges::find(kConfigs, config, &Registered::config);
    if (found == kConfigs.end())
        return {};
    return {{"training.max_context_length", std::to_string(found->context), 0},
        {"training.num_tokens_per_microbatch_per_dp_rank", std::to_string(found->context * found->sequences), 0},
        {"activation_checkpoint.mode", found->checkpoint, 0},
        {"parallelism.tensor_parallel_degree", std::to_string(found->tensor), 0},
        {"parallelism.expert_parallel_degree", std::to_string(found->expert), 0},
        {"parallelism.pipeline_parallel_schedule", found->schedule, 0}, {"model.converters", found->converters, 0},
        {"loss.num_chunks", std::to_string(found->lossChunks), 0}};
}

/// Whether options say by its name before 2026 what an option of torchtitan is.
bool isSaidByOldName(std::string_view name, const std::vector<LaunchOption>& options)
{
    static constexpr auto kOldNames
        = std::to_array<std::pair<std::string_view, std::string_view>>({{"training.max_context_length", "training.seq_len"},
            {"training.num_tokens_per_microbatch_per_dp_rank", "training.local_batch_size"}});
    return std::ranges::any_of(kOldNames, [&](const auto& names) {
        return names.first == name && std::ranges::find(options, names.second, &LaunchOption::name) != options.end();
    });
}

/// torchtitan's names have dashes or underscores; its TOML, which `--job.config_file` names, comes before the line.
Result<std::vector<LaunchOption>> titanOptions(
    const std::string& file, Words words, const ShellScript& script, bool isRunner, std::vector<std::string>& unknown)
{
    std::vector<LaunchOption> line = dashedOptions(words, unknown);
    std::string config;
    for (LaunchOption& option : line) {
        std::replace(option.name.begin(), option.name.end(), '-', '_');
        if (option.name == "job.config_file")
            config = option.value;
    }
    const auto variable = [&](const char* name) {
        const auto found = script.variables.find(name);
        return found == script.variables.end() ? std::string() : found->second;
    };
    std::vector<LaunchOption> options;
    if (isRunner) { // as run_train.sh hands them on
        if (config.empty())
            config = variable("CONFIG_FILE");
        if (const std::string module = variable("MODULE"); !module.empty())
            options.push_back({"module", module, 0});
        if (const std::string name = variable("CONFIG"); !name.empty())
            options.push_back({"config", name, 0});
    }
    if (!config.empty()) {
        const std::filesystem::path path = std::filesystem::path(file).parent_path() / config;
        const auto text = readFile(path);
        if (!text)
            return text.error();
        auto more = tomlOptions(path.string(), *text);
        if (!more)
            return more.error();
        for (LaunchOption& option : *more)
            option.line = 0; // of another file
        options = *std::move(more);
    }
    options.insert(options.end(), std::make_move_iterator(line.begin()), std::make_move_iterator(line.end()));
    std::vector<LaunchOption> registered = registeredOptions(lastValue(options, "config"));
    std::erase_if(registered, [&](const LaunchOption& option) { return isSaidByOldName(option.name, options); });
    options.insert(options.begin(), registered.begin(), registered.end()); // of which the line overrides some
    return options;
}

bool isToml(const std::string& file, std::string_view text)
{
    const auto has = [&](std::string_view section) {
        return text.starts_with(section) || text.find("\n" + std::string(section)) != std::string_view::npos;
    };
    return file.ends_with(".toml") || (has("[training]") && (has("[parallelism]") || has("[job]")));
}

/// Where options are written, in place of where the array or the variable that has them is used: the last line that has the name.
void placeOptions(std::string_view text, LaunchLine& launch)
{
    std::map<std::string, int, std::less<>> lines;
    int number = 0;
    for (const std::string& line : split(text, '\n')) {
        ++number;
        constexpr std::string_view kEnds = " \t\r\"'=();";
        for (std::size_t begin = line.find_first_not_of(kEnds); begin != std::string::npos;) {
            const std::size_t end = std::min(line.find_first_of(kEnds, begin), line.size());
            std::string name = line.substr(begin, end - begin);
            if (launch.framework == "torchtitan")
                std::replace(name.begin(), name.end(), '-', '_');
            lines.insert_or_assign(
                name.substr(std::min(name.find_first_not_of(launch.framework == "torchtitan" ? "_" : "-"), name.size())), number);
            begin = line.find_first_not_of(kEnds, end);
        }
    }
    for (LaunchOption& option : launch.options) {
        if (const auto found = lines.find(option.name); option.line > 0 && found != lines.end())
            option.line = found->second;
    }
}

/// Whose settings a text is, of which only a script says what they train: DeepSpeed's JSON or accelerate's YAML. Empty: neither's.
std::string_view otherSettings(std::string_view text)
{
    const auto has = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
    if (trimmed(text).starts_with('{') && (has("\"zero_optimization\"") || has("\"train_micro_batch_size_per_gpu\"")))
        return "DeepSpeed";
    const auto hasKey = [&](const std::string& key) { return text.starts_with(key + ":") || has("\n" + key + ":"); };
    return hasKey("distributed_type") && (hasKey("compute_environment") || hasKey("num_processes")) ? "accelerate" : "";
}

constexpr std::size_t kLargestScript = std::size_t{1} << 20; ///< bytes: what is larger starts no training

constexpr const char* kReadLines
    = "Megatron-LM (pretrain_gpt.py), torchtitan (torchtitan.train, run_train.sh, a TOML) and MaxText (MaxText.train)";

} // namespace

bool isLaunchText(const std::string& file, std::string_view text)
{
    if (text.starts_with(kMadeStudy))
        return false;
    const auto endsInOne = [&](std::initializer_list<std::string_view> endings) {
        return std::ranges::any_of(endings, [&](std::string_view ending) { return file.ends_with(ending); });
    };
    if (text.size() <= kLargestScript && !otherSettings(text).empty())
        return true;
    if (endsInOne({".yaml", ".yml", ".json", ".mlir", ".md", ".ipynb", ".py", ".html", ".log"}))
        return false;
    if (endsInOne({".sh", ".bash", ".sbatch", ".slurm"}) || isToml(file, text))
        return true;
    if (text.starts_with("meshwright:") || text.find("\nmeshwright:") != std::string_view::npos)
        return false;
    if (text.size() > kLargestScript)
        return false;
    const ShellScript script = readShellScript(text);
    return std::ranges::any_of(startsOf(script), isCommand) || otherLauncherOf(script);
}

Result<LaunchLine> readLaunchLine(const std::string& file, std::string_view text)
{
    LaunchLine launch;
    if (isToml(file, text)) {
        auto options = tomlOptions(file, text);
        if (!options)
            return options.error();
        launch.framework = "torchtitan";
        launch.options = *std::move(options);
        launch.line = 1;
        return launch;
    }
    if (text.size() > kLargestScript)
        return Problem{"MW1494",
            fmt::format(
                "a script of {} is none that starts a training", formatBytes(asDouble(static_cast<std::int64_t>(text.size())))),
            "give the script itself", Place{file}};
    if (const std::string_view owner = otherSettings(text); !owner.empty())
        return Problem{"MW1494",
            fmt::format("these are settings of {}, which do not say which model is trained: the script does", owner),
            fmt::format(
                "name the model: meshwright plan config.json --on h100x64; of launch lines, those of {} are read", kReadLines),
            Place{file}};
    const ShellScript script = readShellScript(text);
    const std::vector<Start> starts = startsOf(script);
    if (starts.empty()) {
        if (const auto other = otherLauncherOf(script))
            return Problem{"MW1494",
                fmt::format("this line of {} does not say which model is trained, and how: its script does", other->text),
                fmt::format("read are the lines of {}; for another, name the model: meshwright plan config.json --on h100x64",
                    kReadLines),
                Place{file, static_cast<int>(other->line), 1, {}}};
        return Problem{"MW1494",
            "nothing here starts a training that is known; loops and what other scripts start are not followed",
            fmt::format("read are the lines of {}", kReadLines), Place{file}};
    }
    const auto& [words, at] = starts.front();
    const Words behind = Words(words).subspan(at + 1);
    launch.framework = frameworkOf(words[at].text);
    launch.line = static_cast<int>(words[at].line);
    const std::string program = words[at].text.substr(words[at].text.rfind('/') + 1);
    if (launch.framework == "megatron" && !lowerCase(program).starts_with("pretrain_gpt"))
        return Problem{"MW1494", fmt::format("{} trains another kind of model than GPT's", program),
            "pretrain_gpt.py is read; for another model give its configuration: meshwright plan config.json",
            Place{file, launch.line, 1, {}}};
    launch.trainings = starts.size();
    launch.devices = devicesOf(Words(words).first(at), script);
    if (launch.framework == "megatron") {
        launch.options = dashedOptions(behind, launch.unknown);
    } else if (launch.framework == "maxtext") {
        auto options = maxTextOptions(file, behind, script, launch.unknown);
        if (!options)
            return options.error();
        launch.options = *std::move(options);
        launch.devices = axesProduct(launch.options);
        const std::string slices = lastValue(launch.options, "compile_topology_num_slices");
        launch.hardware = lastValue(launch.options, "compile_topology");
        if (!launch.hardware.empty() && parseInteger(slices).value_or(1) > 1)
            launch.hardware += "x" + slices;
    } else {
        const bool isRunner = words[at].text.ends_with("run_train.sh");
        auto options = titanOptions(file, behind, script, isRunner, launch.unknown);
        if (!options)
            return options.error();
        launch.options = *std::move(options);
        const auto perHost = script.variables.find("NGPU");
        if (isRunner)
            launch.devices = perHost == script.variables.end() ? 8 : parseInteger(perHost->second);
    }
    placeOptions(text, launch);
    return launch;
}

std::string stackOf(const LaunchLine& launch)
{
    if (launch.framework != "megatron")
        return launch.framework;
    const bool isFlash
        = std::ranges::any_of(launch.options, [](const LaunchOption& option) { return option.name == "use-flash-attn"; });
    return lastValue(launch.options, "transformer-impl") == "local" && !isFlash ? "megatron" : "nemo";
}

} // namespace meshwright::sim
