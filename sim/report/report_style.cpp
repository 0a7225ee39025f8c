// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/report_style.h"

#include "core/draw/svg.h"

#include <fmt/format.h>

namespace meshwright::sim {

namespace {

constexpr const char* kSheet = R"css(
*,*::before,*::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--background);color:var(--text);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
.page{max-width:76rem;margin:0 auto;padding:2.5rem clamp(1rem,4vw,3rem) 4rem}
a{color:var(--accent);text-underline-offset:.15em}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:4px}
p{margin:0 0 1rem;max-width:46rem}
code,pre,.mono{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86em}
.skip{position:absolute;left:-999rem}
.skip:focus{left:1rem;top:1rem;background:var(--background);padding:.5rem 1rem}

/* head */
.product{margin:0 0 .35rem;color:var(--muted-text);font-size:.85rem;letter-spacing:.02em}
h1{margin:0 0 1rem;font-size:clamp(1.5rem,1.1rem + 1.6vw,2.1rem);line-height:1.2;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
.facts{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:0 0 2rem;padding:0}
.facts div{min-width:0}
.facts dt{color:var(--muted-text);font-size:.78rem}
.facts dd{margin:0;font-size:.95rem;overflow-wrap:anywhere}

/* the four answers */
.answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,15.5rem),1fr));gap:1rem;margin:0 0 3rem}
.answers:has(details[open]){align-items:start}
.answer{display:flex;flex-direction:column;min-width:0;margin:0;padding:1.1rem 1.2rem 1rem;background:var(--surface);
  border:1px solid var(--grid);border-top:3px solid var(--tone);border-radius:10px}
.answer h2{display:flex;align-items:baseline;justify-content:space-between;gap:.5rem;margin:0 0 .4rem;font-size:.85rem;font-weight:500;
  color:var(--muted-text);border:0;padding:0}
.answer .headline{margin:0;font-size:1.7rem;line-height:1.2;font-weight:650;letter-spacing:-.01em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.answer .headline.long{font-size:1.2rem;line-height:1.3}
.answer .value{margin:.15rem 0 0;font-size:1rem;font-weight:500;font-variant-numeric:tabular-nums}
.answer .sentence{margin:.7rem 0 0;font-size:.92rem;color:var(--muted-text)}
.answer .more{margin-top:auto;padding-top:.8rem}
.answer code{overflow-wrap:anywhere}
.meter{height:6px;margin:.75rem 0 0;background:var(--grid);border-radius:3px;overflow:hidden}
.meter i{display:block;height:100%;background:var(--tone)}
.neutral{--tone:var(--accent)}.good{--tone:var(--reduce-scatter)}.warning{--tone:var(--warning)}.error{--tone:var(--error)}
.mark{flex:none;padding:.05rem .5rem;border:1px solid currentColor;border-radius:1rem;font-size:.72rem;font-weight:600;line-height:1.4;color:var(--text)}
.mark.warning{color:var(--warning)}.mark.error{color:var(--error)}

/* contents and sections */
.body{display:grid;grid-template-columns:minmax(0,1fr);gap:0 3rem}
nav ol{display:flex;flex-wrap:wrap;gap:.35rem 1.25rem;margin:0 0 2.5rem;padding:.8rem 0;border-block:1px solid var(--grid);list-style:none;font-size:.9rem}
nav a{color:var(--text);text-decoration:none}
nav a:hover{color:var(--accent);text-decoration:underline}
@media (min-width:75rem){
  .body{grid-template-columns:10.5rem minmax(0,1fr)}
  nav ol{position:sticky;top:1.5rem;display:block;border:0;border-left:1px solid var(--grid);padding:0}
  nav li a{display:block;padding:.28rem 0 .28rem 1rem;line-height:1.35}
}
section{margin:0 0 3.25rem}
main h2{margin:0 0 .9rem;font-size:1.35rem;line-height:1.25;font-weight:650;letter-spacing:-.005em;scroll-margin-top:1rem}
main h3{margin:0 0 .5rem;font-size:1rem;font-weight:600}
.block{margin:0 0 1.75rem}
p.good,p.warning,p.error{padding:.6rem .9rem;border-left:3px solid var(--tone);background:var(--surface);border-radius:0 6px 6px 0;max-width:none}

/* what opens */
details>summary{cursor:pointer;list-style:none}
details>summary::-webkit-details-marker{display:none}
.opener>summary{display:inline}
details>summary::after{content:"";display:inline-block;width:.42em;height:.42em;margin:0 .15em .14em .55em;border:solid currentColor;border-width:0 1.5px 1.5px 0;
  transform:rotate(45deg);opacity:.65}
details[open]>summary::after{transform:rotate(225deg);margin-bottom:-.04em}
.opened{margin-top:.6rem;font-size:.88rem}
.opened p{margin:0 0 .5rem;max-width:none;white-space:pre-line;overflow-wrap:anywhere}
.formula{margin:0 0 .5rem;padding:.45rem .7rem;background:var(--background);border:1px solid var(--grid);border-radius:6px;overflow-wrap:anywhere}
.inputs{width:100%;border-collapse:collapse;font-size:.95em}
.inputs th,.inputs td{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top;font-weight:400;border:0;overflow-wrap:anywhere}
.inputs th{color:var(--muted-text);white-space:normal}
.inputs td:last-child{color:var(--muted-text);padding-right:0}
.how{font-size:.85rem;color:var(--muted-text)}
.how:hover{color:var(--accent)}
.stack .inputs,.stack .inputs tbody{display:block}
.stack .inputs tr{display:block;padding:.25rem 0;border-top:1px solid var(--grid)}
.stack .inputs th,.stack .inputs td{display:block;padding:0}
.stack .inputs td:last-child{font-size:.92em}

/* figures */
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,10.5rem),1fr));gap:.75rem;align-items:start}
.figure{min-width:0;padding:.7rem .9rem;border:1px solid var(--grid);border-radius:8px}
.figure .label{display:block;font-size:.82rem;color:var(--muted-text)}
.figure .number{font-size:1.2rem;font-weight:600;font-variant-numeric:tabular-nums}
details.figure[open]{grid-column:span 2;background:var(--surface)}
@media (max-width:33rem){details.figure[open]{grid-column:auto}}

/* tables */
.scroll{overflow-x:auto;margin:0 0 .4rem}
.data{width:100%;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
.data caption{text-align:left;font-weight:600;padding:0 0 .45rem}
.data thead th{padding:.35rem .7rem;text-align:left;vertical-align:bottom;font-weight:500;font-size:.82rem;color:var(--muted-text);border-bottom:1px solid var(--outline)}
.data>tbody>tr>td,.data>tbody>tr>th{padding:.38rem .7rem;text-align:left;vertical-align:top;font-weight:400}
.data>*>tr>:last-child{padding-right:0}
.data>*>tr>:first-child{padding-left:0}
.data .n{text-align:right;white-space:nowrap}
.data>tbody{border-bottom:1px solid var(--grid)}
.data>tbody:hover{background:var(--surface)}
.data>tbody>.opening>td{padding:0 0 .5rem}
.data .opening.closed{display:none}
.data tbody:has(.opener[open]) .opening.closed{display:table-row}
@supports not selector(:has(a)){.data .opening.closed{display:table-row}}
.data .opening.closed .opened{margin-top:0}
.data .opening .inner{position:sticky;left:0;max-width:min(52rem,calc(100vw - 2rem));font-size:.94em}
.data .opening summary{color:var(--muted-text)}
.data .opening summary:hover{color:var(--accent)}
.data button{all:unset;cursor:pointer;font:inherit;color:inherit}
.data button:hover{color:var(--accent)}
.data button:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.data [aria-sort=ascending] button::after{content:" ↑"}
.data [aria-sort=descending] button::after{content:" ↓"}
.note{margin:0;font-size:.85rem;color:var(--muted-text)}

/* pictures */
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1.25rem}
.pictures.wide{grid-template-columns:minmax(0,1fr)}
figure{margin:0;min-width:0;padding:.9rem;border:1px solid var(--grid);border-radius:10px}
figure .scroll{margin:0}
figcaption{margin-top:.6rem;font-size:.88rem;color:var(--muted-text);overflow-wrap:anywhere}
svg.picture{display:block;max-width:100%;height:auto;font-family:inherit}
.wide svg.picture{min-width:min(42rem,100%)}
@media (max-width:48rem){.wide svg.picture{min-width:42rem;max-width:none}}
svg.picture text{white-space:pre}

/* problems, code */
.problem{margin:0 0 .8rem;padding:.7rem .9rem;border:1px solid var(--grid);border-left:3px solid var(--tone);border-radius:0 8px 8px 0}
.problem p{margin:0 0 .25rem;max-width:none;overflow-wrap:anywhere}
.problem .where{color:var(--muted-text);font-size:.86rem}
pre{margin:0;padding:.9rem 1rem;background:var(--surface);border:1px solid var(--grid);border-radius:8px;overflow-x:auto;line-height:1.5;tab-size:4}
pre code{font-size:inherit}
footer{color:var(--muted-text);font-size:.85rem;border-top:1px solid var(--grid);padding-top:1rem}

@page{size:A4;margin:14mm 13mm 15mm}
@media print{
  html{scroll-behavior:auto;font-size:9.5pt}
  body{font-size:1rem;line-height:1.45}
  .page{max-width:none;padding:0}
  nav,.skip{display:none}
  .body{display:block}
  .answers{grid-template-columns:1fr 1fr;gap:4mm;margin-bottom:7mm}
  .answer,.figure,figure,.problem,.data>tbody,.inputs tr{break-inside:avoid}
  .answer .headline{font-size:15pt}
  h1{font-size:18pt}
  main h2{font-size:13pt;break-after:avoid}
  h3,caption,.block>p:first-child{break-after:avoid}
  section{margin-bottom:8mm}
  .block{margin-bottom:5mm}
  .scroll,pre{overflow:visible}
  pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:8pt}
  .data{font-size:8pt}
  p{max-width:none}
  .data thead{display:table-header-group;break-inside:avoid}
  .data>thead>tr>th,.data>tbody>tr>td,.data>tbody>tr>th{padding-right:1.5mm;padding-left:1.5mm}
  .data button{display:contents}
  .data thead .n{white-space:normal}
  .data .opening.closed{display:table-row}
  .data>tbody>.opening>td{padding-bottom:1.2mm}
  .data .opening .inner{position:static;max-width:none}
  .figures{grid-template-columns:repeat(3,1fr);gap:3mm}
  .figure,details.figure[open]{grid-column:auto;padding:2.5mm 3mm;background:none}
  .figure .number{font-size:11pt}
  .answer{padding:3mm 3.5mm}
  figure{padding:3mm}
  .opened,.opened p,.inputs{font-size:7.5pt;margin:.6mm 0 0}
  .formula{background:none;border:0;padding:0;font-size:7.2pt}
  /* inputs in one run of text: name = value (source); */
  .inputs,.inputs tbody,.stack .inputs,.stack .inputs tbody{display:block}
  .inputs tr,.inputs th,.inputs td,.stack .inputs tr,.stack .inputs th,.stack .inputs td{display:inline;padding:0;border:0}
  .inputs th::after{content:" = "}
  .inputs td:last-child:not(:empty)::before{content:" ("}
  .inputs td:last-child:not(:empty)::after{content:")"}
  .inputs tr:not(:last-child)::after{content:"; "}
  .pictures{grid-template-columns:1fr 1fr;gap:4mm}
  .wide svg.picture{min-width:0;max-width:100%}
  /* everything that opens is open */
  details::details-content{content-visibility:visible;display:block;height:auto}
  details>summary::after{content:none}
  .how{display:none}
  *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
)css";

constexpr const char* kScript = R"js(
"use strict";
for (const table of document.querySelectorAll("table.data")) {
  const heads = [...table.tHead.rows[0].cells];
  if (table.tBodies.length < 3) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const value = body => {
        const cell = body.rows[0].cells[column];
        return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.trim();
      };
      const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
      const bodies = [...table.tBodies].sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      bodies.forEach(body => table.append(body));
    });
  });
}
if (!CSS.supports("selector(::details-content)")) {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach(one => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach(one => { one.open = false; }));
}
)js";

} // namespace

std::string reportStyle()
{
    return fmt::format(":root{{color-scheme:light dark;{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{}{}",
        themeVariables(Theme::Light), themeVariables(Theme::Dark), svgClassRules(), kSheet);
}

const char* reportScript()
{
    return kScript;
}

} // namespace meshwright::sim
