// SPDX-License-Identifier: Apache-2.0
// Moves the line of each timeline along with the video, and the video to where a timeline is clicked.
(() => {
  const video = document.querySelector("video");
  const lines = [...document.querySelectorAll("line.now")];
  if (!video || !lines.length) return;
  const follow = () => {
    for (const line of lines) {
      const { left, scale, end } = line.dataset;
      const x = +left + +scale * Math.min(video.currentTime, +end);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.style.visibility = "visible";
    }
    requestAnimationFrame(follow);
  };
  follow();
  for (const line of lines) {
    const chart = line.ownerSVGElement;
    chart.addEventListener("click", (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      const { left, scale, end } = line.dataset;
      video.currentTime = Math.min(Math.max((point.x - +left) / +scale, 0), +end);
    });
  }
})();
