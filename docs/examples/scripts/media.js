// Pictures come as handles: kind, MIME type and size, but no bytes in the script.
// emit() attaches one to the answer; the command line writes it to a folder.

const {text, media: [label]} = await codemode.shop__get_label({id: "1004"});
emit(label);
return `${text}: ${label.kind}, ${label.mimeType}`;

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/media.js --media labels
// media 1: labels/media-1.png
// "label of order 1004: image, image/png"
