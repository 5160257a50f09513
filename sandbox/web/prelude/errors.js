// Makes one class of the errors that answers throw.
(function (name) {
  const make = { [name]: class extends Error {
    constructor(message, fields) {
      super(message);
      if (fields !== undefined) Object.assign(this, fields);
    }
  } }[name];
  Object.defineProperty(make.prototype, "name", { value: name, writable: true, enumerable: false, configurable: true });
  return make;
})
