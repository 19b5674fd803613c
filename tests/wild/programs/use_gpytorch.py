"""Gaussian processes: exact regression with two kernels, and variational classification."""

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 12)
y = torch.sin(6 * x) + 0.1 * torch.randn(12)


class Regression(gpytorch.models.ExactGP):
    """A sum of two kernels."""

    def __init__(self, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        smooth, rough = gpytorch.kernels.RBFKernel(), gpytorch.kernels.MaternKernel(nu=1.5)
        self.covar_module = gpytorch.kernels.ScaleKernel(smooth) + gpytorch.kernels.ScaleKernel(rough)

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


class Classification(gpytorch.models.ApproximateGP):
    """Eight inducing points, and a natural-gradient distribution."""

    def __init__(self):
        points = torch.linspace(0, 1, 8)
        distribution = gpytorch.variational.NaturalVariationalDistribution(8)
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


def fit(model, likelihood, objective, targets, steps=2):
    """Take a few steps."""
    model.train()
    likelihood.train()
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], 0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = -objective(model(x), targets)
        loss.backward()
        optimiser.step()


gaussian = gpytorch.likelihoods.GaussianLikelihood()
regression = Regression(gaussian)
fit(regression, gaussian, gpytorch.mlls.ExactMarginalLogLikelihood(gaussian, regression), y)
bernoulli, classification = gpytorch.likelihoods.BernoulliLikelihood(), Classification()
fit(classification, bernoulli, gpytorch.mlls.VariationalELBO(bernoulli, classification, 12), (y > 0).float())
