// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string_view>

/// What is fed with damaged text: one function for each parser of the project. Each reads the text and, where something came of it, checks
/// what must hold of everything that was read (it is written and read again, say). It ends the program when that does not hold.
///
/// The same functions are libFuzzer's targets (preset `fuzz`) and run over tests/fuzz/corpus in the test suite.
namespace meshwright::fuzz {

void feedMesh(std::string_view text);
void feedSharding(std::string_view text);
void feedTiles(std::string_view text);
void feedLogicalRules(std::string_view text);
void feedOpRule(std::string_view text);
void feedProgram(std::string_view text);
void feedHlo(std::string_view text);
void feedStudy(std::string_view text);
void feedSettings(std::string_view text);
void feedCatalogue(std::string_view text);
void feedReport(std::string_view text);
void feedTrainingResult(std::string_view text);
void feedManifest(std::string_view text);
void feedMessages(std::string_view text);
void feedModelConfig(std::string_view text);
void feedLaunch(std::string_view text);
void feedNpy(std::string_view bytes);
void feedCsv(std::string_view text);
void feedFlags(std::string_view text);
void feedNcclLog(std::string_view text);
void feedSweep(std::string_view text);
void feedHardware(std::string_view text);
void feedHostProfile(std::string_view text);
void feedRecords(std::string_view text);
void feedChakra(std::string_view bytes);
void feedPage(std::string_view text);
void feedTrace(std::string_view text);
void feedCompared(std::string_view text);

/// Ends the program, after saying what does not hold, unless `holds`.
void require(bool holds, std::string_view what);

/// The first line of `text`, which is cut off with its end; for targets that take more than one text.
std::string_view takeLine(std::string_view& text);

} // namespace meshwright::fuzz
