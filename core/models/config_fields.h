// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/transformer_config.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

namespace meshwright {

/// Takes fields out of the JSON object of a model's configuration, and notes all that is wrong and what was asked for. Not for others than the
/// readers of such files.
class FieldReader {
public:
    using Json = nlohmann::json;
    /// Names of one field in the files of different families; the first one that is there counts.
    using Names = std::initializer_list<const char*>;

    FieldReader(const Json& json, Problems& problems)
        : m_json(json)
        , m_problems(problems)
    {
    }

    bool has(const std::string& name);

    /// The field, if it is there and not null.
    const Json* find(const std::string& name);

    /// The first of these names whose field is there and not null; else the first one.
    std::string nameOf(Names names);

    /// A number, or a list of equal ones.
    std::int64_t size(const std::string& name, std::int64_t absent, std::int64_t least = 1);
    std::int64_t size(Names names, std::int64_t absent, std::int64_t least = 1) { return size(nameOf(names), absent, least); }
    std::int64_t neededSize(Names names); ///< noted where it is missing, see `refuseMissing`
    double number(const std::string& name, double absent);
    bool flag(const std::string& name, bool absent);
    bool flag(Names names, bool absent) { return flag(nameOf(names), absent); }
    std::string word(const std::string& name, const std::string& absent);

    /// The words of a list, or the letters of a text; empty where there is none.
    std::vector<std::string> words(const std::string& name);

    void complain(const std::string& name, const std::string& wanted, const Json& field);
    void refuse(const char* id, const std::string& name, std::string message, std::string fix = {});
    bool isGood() const { return m_problems.empty() && m_missing.empty(); } ///< so far: nothing is made up for what was wrong
    void refuseMissing(); ///< one problem for all sizes that were needed and are not there

    /// Numbers, lists of numbers, flags that are set and "layer_types" that nobody asked for, those inside of objects by their paths
    /// (`rope_scaling.factor`), but for inert ones.
    std::vector<std::string> ignoredFields() const;

private:
    const Json& m_json;
    Problems& m_problems;
    std::set<std::string> m_asked;
    std::vector<std::string> m_missing;
};

/// Whether a number or flag of a configuration changes neither the sizes of a model nor what its products cost: it stands on the list of such
/// fields (config_fields.cpp), or in an object that does. `path`: "bos_token_id", "rope_scaling.factor".
bool isInertField(std::string_view path);

/// Notes which fields were ignored: `FieldReader::ignoredFields`.
void noteIgnored(const FieldReader& reader, std::vector<std::string>& notes, std::vector<std::string>& ignored);

TransformerActivation activationOf(FieldReader& reader, const std::string& field, const std::string& absent);

/// hidden / heads where the library insists that it divides.
std::int64_t evenHeadDim(FieldReader& reader, Problems& problems, const TransformerConfig& config);

/// A number that older files have at the top and newer ones in "rope_parameters".
double rotaryNumber(
    FieldReader& reader, Problems& problems, const std::string& topName, const std::string& innerName, double absent);

/// A configuration of a family that is not known, by its fields: grouped and latent attention, windows, experts behind dense layers, shared
/// experts, layers of several kinds. `notes` gets what of it is left out, `ignored` the numbers and set flags that nobody asked for. Problems: MW1351 layers of a kind that is not known, MW1352, MW1353.
void readByFields(FieldReader& reader, Problems& problems, TransformerConfig& config, std::vector<std::string>& notes,
    std::vector<std::string>& ignored);

} // namespace meshwright
