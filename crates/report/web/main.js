// Puts the parts together. The time it took is kept for those who measure.

setUpTheme();
showHead();
showSummary();
showLevels();
scrollLattice();
showRemarks();
showRun();
showTabs();
setUpTimeline();
if (data.counterexamples.length) tell('choose', 0);
// What a link points at has moved while the parts were put in.
const target = location.hash && byId(location.hash.slice(1));
if (target) target.scrollIntoView({ behavior: 'instant' });
requestAnimationFrame(() => {
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
});
