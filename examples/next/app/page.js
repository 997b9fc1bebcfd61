import Digit from './digit.js';

export default function Page() {
  return (
    <main>
      <h1>Which digit?</h1>
      <Digit />
    </main>
  );
}
