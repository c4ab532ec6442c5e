// Takes as many MiB as the first argument says, outside the JavaScript heap as buffers do.
const wanted = Number(process.argv[2]);
const taken = [];
for (let i = 0; i < wanted; i++) taken.push(Buffer.alloc(1024 * 1024, 1));
console.log(JSON.stringify({ taken: taken.length }));
