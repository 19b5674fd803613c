"""How do I train features that do not tell two domains apart?

Reverse the gradient between the features and a head that guesses the domain: the head learns to guess, the
features learn to mislead it. The second domain is a copy of the digits, shifted by a pattern, and its
labels are not used.
"""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import pullback as pb


def domains():
    """Digits, a shifted copy of them, and the labels."""
    images, labels = load_digits(return_X_y=True)
    source = (images / 16).astype("float32")
    pattern = np.random.default_rng(8).normal(size=64) * 0.4
    return source, (source + pattern).astype("float32"), labels


def trained(strength, steps=400):
    """Train; give the accuracy on the target, and how well the domains are told apart."""
    keras.utils.set_random_seed(3)
    source, target, labels = domains()
    features, digit, domain = keras.layers.Dense(48), keras.layers.Dense(10), keras.layers.Dense(2)
    features.build([None, 64])
    digit.build([None, 48])
    domain.build([None, 48])
    weights = [w for part in (features, digit, domain) for w in part.trainable_variables]
    optimizer = keras.optimizers.Adam(3e-3, beta_1=0.5)
    optimizer.build(weights)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            h = features(x)
            read = entropy(y, digit(tf.nn.relu(h[:128])))
            told = entropy(tf.repeat([0, 1], 128), domain(pb.reverse_gradient(h, strength)))
            loss = tf.reduce_mean(read) + tf.reduce_mean(told)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    rng = np.random.default_rng(0)
    for _ in range(steps):
        a, b = rng.integers(0, len(source), [2, 128])
        step(np.concatenate([source[a], target[b]]), labels[a])
    right = np.mean(np.argmax(digit(tf.nn.relu(features(target))), -1) == labels)
    guesses = [np.mean(np.argmax(domain(features(x)), -1) == k) for k, x in enumerate((source, target))]
    return right, np.mean(guesses)


if __name__ == "__main__":
    told, mixed = trained(0.0), trained(0.1)
    print(f"no reversal: target read {told[0]:.2f}, domains told apart {told[1]:.2f}")
    print(f"reversed:    target read {mixed[0]:.2f}, domains told apart {mixed[1]:.2f}")
    assert told[1] > 0.95, "without a reversal the head tells the domains apart"
    assert mixed[1] < 0.8, "the features mislead it"
    assert mixed[0] > told[0] + 0.1, "and what is left reads the other domain better"
