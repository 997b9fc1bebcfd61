// In development Vite moves dependencies away from the files beside them.
export default { optimizeDeps: { exclude: ['kilim'] } };
