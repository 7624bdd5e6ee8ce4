// How a page looks and the little that it does: its style sheet and its script. Both stand inside
// the file.
#pragma once

#include <string_view>

namespace stepcast::sim {

// Colours have a contrast of 4.5 or more on their background, light and dark (WCAG 2.1, 1.4.3);
// tests/cli/shared/read_page.py computes it. Pictures' ink (svg_ink) becomes the page's own.
inline constexpr std::string_view page_style = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1d21;--soft:#50565e;--line:#c9ced6;
--panel:#f3f5f8;--link:#0b57c2}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8eaed;--soft:#b0b7c1;
--line:#454c56;--panel:#1f242a;--link:#8ab8ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:76rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.4rem 0 .3rem}
h1,h2,h3,p,dd,dt,summary,figcaption{overflow-wrap:anywhere}
p{margin:.5rem 0;max-width:60rem}
a{color:var(--link)}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0;margin:.5rem 0}
dl.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,13rem),1fr));
gap:.7rem;margin:1rem 0}
dl.figures div{background:var(--panel);border:1px solid var(--line);border-radius:6px;
padding:.6rem .8rem}
dl.figures dt{color:var(--soft);font-size:.85rem}
dl.figures dd{margin:0}
dl.figures dd.value{font-size:1.25rem;font-weight:600;line-height:1.3}
dl.figures dd.note{color:var(--soft);font-size:.85rem}
figure{margin:1rem 0}
figcaption{font-weight:600}
.note{color:var(--soft);font-weight:400}
.scroll{overflow-x:auto;max-width:100%}
.scroll svg{display:block;width:100%;height:auto}
@media (max-width:44rem){.scroll svg{width:auto}
.cards table,.cards tbody,.cards tr,.cards td{display:block}.cards thead{display:none}
.cards td{display:flex;gap:1rem;justify-content:space-between;padding-right:0;white-space:normal}
.cards tbody tr+tr td{border-top:0}.cards tr{border-bottom:1px solid var(--line);padding:.4rem 0}
.cards td:empty{display:none}.cards td:not([data-is]){justify-content:flex-start;font-weight:600}
.cards td::before{content:attr(data-is);color:var(--soft);flex:none}}
svg [fill="#777"]{fill:currentColor}
svg [stroke="#777"]{stroke:currentColor}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.2rem .7rem .2rem 0;text-align:right;vertical-align:top}
th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--line)}
tbody tr+tr td{border-top:1px solid var(--line)}
td{white-space:nowrap}
td.left,td[colspan]{white-space:normal}
.left,td[colspan]{text-align:left}
td.left{min-width:5rem}
td[colspan]{max-width:44rem}
thead td{border-bottom:1px solid var(--line)}
th{vertical-align:bottom}
details{margin:.4rem 0}
summary{cursor:pointer;color:var(--link)}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.7rem;
margin:.4rem 0;overflow-x:auto;font-size:.85rem}
button{font:inherit;font-size:.85rem;color:var(--link);background:var(--panel);
border:1px solid var(--soft);border-radius:4px;padding:.1rem .6rem;margin:.3rem 0;cursor:pointer}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
footer{margin-top:3rem;padding-top:.6rem;border-top:1px solid var(--line);color:var(--soft);
font-size:.85rem}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--line:#999;--panel:#fff;--link:#000}
nav,button{display:none}body{max-width:none;font-size:11pt}figure,table{break-inside:avoid}
h2,h3,figcaption,summary{break-after:avoid}table{font-size:8.5pt}
.scroll{overflow:visible}.scroll svg{max-width:100%}
details::details-content{content-visibility:visible;height:auto}}
)css";

// A table goes to the clipboard as tab-separated text. Without a clipboard the button says so. For
// print all that is folded is opened, and folded again behind it.
inline constexpr std::string_view page_script = R"js(
document.addEventListener('click',async e=>{
const b=e.target.closest('button[data-copy]');if(!b)return;
const t=document.getElementById(b.dataset.copy);
const text=t.rows?[...t.rows].map(r=>[...r.cells].map(c=>c.innerText).join('\t')).join('\n')
:t.innerText;
try{await navigator.clipboard.writeText(text);b.textContent='copied'}
catch(x){const s=getSelection(),r=document.createRange();r.selectNodeContents(t);
s.removeAllRanges();s.addRange(r);b.textContent='marked: copy with Ctrl+C'}});
let folded=[];
addEventListener('beforeprint',()=>{folded=[...document.querySelectorAll('details:not([open])')];
folded.forEach(d=>d.open=true)});
addEventListener('afterprint',()=>folded.forEach(d=>d.open=false));
)js";

}  // namespace stepcast::sim
